// Package kumulus starts an emulated Kubernetes cluster for a Go test by the command `kumulus cluster up`:
//
//	cluster, err := kumulus.Start(ctx, kumulus.Nodes(30))
//	defer cluster.Stop()
//
// The command is the one on PATH, or what the variable KUMULUS names. The cluster ends with the test's process, however
// that ends.
package kumulus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a cluster that is up.
type Cluster struct {
	Name              string `json:"name"`
	Kubeconfig        string `json:"kubeconfig"`
	Server            string `json:"server"`
	Folder            string `json:"folder"`
	Nodes             int    `json:"nodes"`
	KubernetesVersion string `json:"kubernetesVersion"`

	programs sync.WaitGroup
	end      []context.CancelFunc
}

// Option says what the cluster is like, as an argument of `kumulus cluster up`.
type Option func() []string

// Nodes asks for that many plain nodes.
func Nodes(count int) Option {
	return func() []string { return []string{"--nodes", strconv.Itoa(count)} }
}

// Machines asks for nodes of an instance type, or with a GPU such as h100.
func Machines(machine string, count int) Option {
	return func() []string { return []string{"--nodes", fmt.Sprintf("%s=%d", machine, count)} }
}

// File takes what a stack file says.
func File(path string) Option {
	return func() []string { return []string{path} }
}

// KubernetesVersion asks for another version than the default one, such as 1.36.4.
func KubernetesVersion(version string) Option {
	return func() []string { return []string{"--kubernetes", version} }
}

// Start starts a cluster and waits until its nodes are Ready.
func Start(ctx context.Context, options ...Option) (*Cluster, error) {
	arguments := []string{"cluster", "up", "--json", "--detach", "--ends-with", strconv.Itoa(os.Getpid())}
	for _, option := range options {
		arguments = append(arguments, option()...)
	}
	output, err := run(ctx, arguments...)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{}
	if err := json.Unmarshal(output, cluster); err != nil {
		return nil, fmt.Errorf("kumulus cluster up printed no cluster: %w", err)
	}
	return cluster, nil
}

// Config is what clients of the cluster are made from.
func (c *Cluster) Config() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
}

// Run starts a program, such as an operator, with the cluster's kubeconfig as KUBECONFIG. It ends with the cluster.
func (c *Cluster) Run(name string, arguments ...string) error {
	ctx, end := context.WithCancel(context.Background())
	program := exec.CommandContext(ctx, name, arguments...)
	program.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	program.Stdout, program.Stderr = os.Stdout, os.Stderr
	// Also when nobody stops the cluster. This is about the thread that starts it, so that one is kept for it.
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	c.end = append(c.end, end)
	c.programs.Go(func() {
		runtime.LockOSThread()
		started <- program.Start()
		program.Wait()
	})
	return <-started
}

// Stop ends the cluster's processes, and the programs that Run started, and removes its folder.
func (c *Cluster) Stop() error {
	for _, end := range c.end {
		end()
	}
	c.programs.Wait()
	_, err := run(context.Background(), "cluster", "down", c.Folder)
	return err
}

func run(ctx context.Context, arguments ...string) ([]byte, error) {
	name := os.Getenv("KUMULUS")
	if name == "" {
		name = "kumulus"
	}
	command := exec.CommandContext(ctx, name, arguments...)
	var errors bytes.Buffer
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		said := strings.TrimSpace(errors.String())
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments[:2], " "), err, said)
	}
	return output, nil
}
