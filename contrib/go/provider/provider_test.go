package provider_test

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"

	kumulus "github.com/kumulus-io/kumulus/contrib/go"
	"github.com/kumulus-io/kumulus/contrib/go/provider"
)

var environment env.Environment

func TestMain(m *testing.M) {
	environment = env.New()
	environment.Setup(
		envfuncs.CreateClusterWithOpts(provider.NewProvider(), "test", provider.With(kumulus.Nodes(5))),
		envfuncs.CreateNamespace("mine"),
	)
	environment.Finish(envfuncs.DestroyCluster("test"))
	os.Exit(environment.Run(m))
}

func TestFiveNodesAreReady(t *testing.T) {
	nodes := features.New("nodes").Assess("all are Ready", func(
		ctx context.Context, t *testing.T, config *envconf.Config,
	) context.Context {
		var found corev1.NodeList
		if err := config.Client().Resources().List(ctx, &found); err != nil {
			t.Fatal(err)
		}
		if len(found.Items) != 5 {
			t.Fatalf("%d nodes", len(found.Items))
		}
		return ctx
	})
	environment.Test(t, nodes.Feature())
}
