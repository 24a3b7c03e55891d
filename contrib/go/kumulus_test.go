package kumulus_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	kumulus "github.com/kumulus-io/kumulus/contrib/go"
)

func TestNodesOfAPlainTest(t *testing.T) {
	cluster, err := kumulus.Start(t.Context(), kumulus.Machines("h100", 3))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	config, _ := cluster.Config()
	nodes, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 3 {
		t.Fatalf("%d nodes: %v", len(nodes.Items), err)
	}
}
