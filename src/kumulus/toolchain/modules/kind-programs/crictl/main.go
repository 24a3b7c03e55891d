// crictl has the verbs of cri-tools' crictl that kind calls in a node, `inspecti` and `images`, and `pods` and `ps` for
// people. cri-tools itself cannot be had as a Go module with checksums that hold.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	endpoint = "unix:///run/containerd/containerd.sock"
	patience = 20 * time.Second
)

type runtime struct {
	images cri.ImageServiceClient
	pods   cri.RuntimeServiceClient
}

// inspected is what `crictl inspecti` prints of an image, as far as kind reads it.
type inspected struct {
	Status struct {
		ID          string   `json:"id"`
		RepoTags    []string `json:"repoTags"`
		RepoDigests []string `json:"repoDigests"`
		Size        string   `json:"size"`
	} `json:"status"`
}

func main() {
	verbs := map[string]func(context.Context, runtime, []string) error{
		"inspecti": inspectImages, "images": listImages, "pods": listPods, "ps": listContainers,
	}
	if len(os.Args) < 2 || verbs[os.Args[1]] == nil {
		fail(2, "usage: crictl inspecti IMAGE... | images | pods | ps")
	}
	connection, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fail(1, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	to := runtime{cri.NewImageServiceClient(connection), cri.NewRuntimeServiceClient(connection)}
	if err := verbs[os.Args[1]](ctx, to, os.Args[2:]); err != nil {
		fail(1, err)
	}
}

func inspectImages(ctx context.Context, to runtime, names []string) error {
	for _, name := range names {
		answer, err := to.images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
		if err != nil {
			return err
		}
		image := answer.Image
		if image == nil {
			return fmt.Errorf("no such image %q present", name)
		}
		var document inspected
		document.Status.ID, document.Status.Size = image.Id, strconv.FormatUint(image.Size, 10)
		document.Status.RepoTags, document.Status.RepoDigests = image.RepoTags, image.RepoDigests
		text, err := json.MarshalIndent(document, "", "  ")
		if err != nil {
			return err
		}
		fmt.Println(string(text))
	}
	return nil
}

func listImages(ctx context.Context, to runtime, _ []string) error {
	answer, err := to.images.ListImages(ctx, &cri.ListImagesRequest{})
	if err != nil {
		return err
	}
	for _, image := range answer.Images {
		fmt.Println(image.Id, image.RepoTags, image.Size)
	}
	return nil
}

func listPods(ctx context.Context, to runtime, _ []string) error {
	answer, err := to.pods.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	for _, pod := range answer.Items {
		fmt.Println(pod.Id, pod.Metadata.Namespace, pod.Metadata.Name, pod.State)
	}
	return nil
}

func listContainers(ctx context.Context, to runtime, _ []string) error {
	answer, err := to.pods.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return err
	}
	for _, container := range answer.Containers {
		fmt.Println(container.Id, container.Labels["io.kubernetes.pod.name"], container.Metadata.Name, container.State)
	}
	return nil
}

func fail(code int, said any) {
	fmt.Fprintln(os.Stderr, said)
	os.Exit(code)
}
