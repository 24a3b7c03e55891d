package example_test

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/kumulus-io/kumulus/contrib/go/example"
	"github.com/kumulus-io/kumulus/contrib/go/provider"
)

var environment = env.New()

func TestMain(m *testing.M) {
	environment.Setup(envfuncs.CreateCluster(provider.NewProvider(), "test"), started)
	environment.Finish(envfuncs.DestroyCluster("test"))
	os.Exit(environment.Run(m))
}

// started runs the controller in the test's process, as long as its context lasts.
func started(ctx context.Context, config *envconf.Config) (context.Context, error) {
	options := ctrl.Options{Metrics: server.Options{BindAddress: "0"}}
	manager, err := ctrl.NewManager(config.Client().RESTConfig(), options)
	if err == nil {
		err = (&example.Cordon{Client: manager.GetClient()}).SetupWithManager(manager)
	}
	go manager.Start(ctx)
	return ctx, err
}

func TestABrokenNodeIsCordoned(t *testing.T) {
	cordon := features.New("cordon").Assess("a broken node", func(
		ctx context.Context, t *testing.T, config *envconf.Config,
	) context.Context {
		var nodes corev1.NodeList
		if err := config.Client().Resources().List(ctx, &nodes); err != nil {
			t.Fatal(err)
		}
		node := &nodes.Items[0]
		node.Labels[example.Broken] = ""
		if err := config.Client().Resources().Update(ctx, node); err != nil {
			t.Fatal(err)
		}
		cordoned := conditions.New(config.Client().Resources()).ResourceMatch(node, func(found k8s.Object) bool {
			return found.(*corev1.Node).Spec.Unschedulable
		})
		if err := wait.For(cordoned, wait.WithTimeout(20*time.Second)); err != nil {
			t.Fatal(err)
		}
		return ctx
	})
	environment.Test(t, cordon.Feature())
}
