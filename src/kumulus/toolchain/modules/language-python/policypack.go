// Runs policy packs written in Python for engines newer than this language host.
//
// Engines of its time started `pulumi-analyzer-policy-python`; newer ones ask the language host, in fields of the request
// that it does not know: 5 is a ProgramInfo {1: root directory, 4: options}, 6 the plugin's kind
// (sdk/proto/pulumi/language.proto of 3.246). What is run is what that program ran.
package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/pulumi/pulumi/sdk/v3/python"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	infoField      = 5
	kindField      = 6
	rootField      = 1
	optionsField   = 4
	kindOfPolicies = "analyzer"
)

// policyPack is a directory with PulumiPolicy.yaml and __main__.py.
type policyPack struct {
	directory  string
	virtualenv string
}

// packOf is the policy pack that a request is for; nil when it is for another kind of plugin.
func packOf(request *pulumirpc.RunPluginRequest) *policyPack {
	unknown := fields(request.ProtoReflect().GetUnknown())
	if string(unknown[kindField]) != kindOfPolicies {
		return nil
	}
	info := fields(unknown[infoField])
	pack := &policyPack{directory: string(info[rootField])}
	var options structpb.Struct
	if proto.Unmarshal(info[optionsField], &options) == nil {
		pack.virtualenv = options.GetFields()["virtualenv"].GetStringValue()
	}
	return pack
}

// run starts the pack in its own virtual environment, and ends it when the engine has no more use for it.
func (pack *policyPack) run(
	request *pulumirpc.RunPluginRequest, server pulumirpc.LanguageRuntime_RunPluginServer,
) error {
	if pack.virtualenv == "" {
		return fmt.Errorf("%s/PulumiPolicy.yaml names no virtualenv in its runtime's options", pack.directory)
	}
	virtualenv := pack.virtualenv
	if !filepath.IsAbs(virtualenv) {
		virtualenv = filepath.Join(pack.directory, virtualenv)
	}
	if !python.IsVirtualEnv(virtualenv) {
		return fmt.Errorf("the policy pack's %s is not there yet: make it with its requirements.txt", virtualenv)
	}
	arguments := append([]string{"-u", "-m", "pulumi.policy"}, request.Args...)
	arguments = append(arguments, pack.directory)
	closer, stdout, stderr, err := rpcutil.MakeRunPluginStreams(server, false)
	if err != nil {
		return err
	}
	// best effort close, but we try an explicit close and error check at the end as well
	defer closer.Close()
	interpreter := python.VirtualEnvCommand(virtualenv, "python").Path
	command := exec.CommandContext(server.Context(), interpreter, arguments...)
	command.Dir = pack.directory
	command.Env = python.ActivateVirtualEnv(request.Env, virtualenv)
	command.Stdout, command.Stderr = stdout, stderr
	if err := command.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return fmt.Errorf("the policy pack in %s could not be started: %w", pack.directory, err)
		}
		return server.Send(&pulumirpc.RunPluginResponse{
			Output: &pulumirpc.RunPluginResponse_Exitcode{Exitcode: int32(exit.ExitCode())},
		})
	}
	return closer.Close()
}

// fields are the length-delimited fields of a message, by number; the last where one is repeated.
func fields(message []byte) map[protowire.Number][]byte {
	found := map[protowire.Number][]byte{}
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return found
		}
		message = message[size:]
		if kind == protowire.BytesType {
			value, size := protowire.ConsumeBytes(message)
			if size < 0 {
				return found
			}
			found[number] = value
			message = message[size:]
			continue
		}
		size = protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return found
		}
		message = message[size:]
	}
	return found
}
