// Package example_test tests an operator of others on emulated nodes, as a process alongside the test: the ChaosPod of
// controller-runtime's examples, which runs a pod, kills it when its time has come, and runs it again.
package example_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	chaos "sigs.k8s.io/controller-runtime/examples/crd/pkg"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/kumulus-io/kumulus/contrib/go/provider"
)

var environment = env.New()

func TestMain(m *testing.M) {
	cluster := envfuncs.CreateCluster(provider.NewProvider(), "test")
	environment.Setup(cluster, envfuncs.SetupCRDs("crds", "*.yaml"), start)
	environment.Finish(stop, envfuncs.DestroyCluster("test"))
	os.Exit(environment.Run(m))
}

var (
	program  = filepath.Join(os.TempDir(), "chaospod")
	operator = exec.Command(program)
)

func start(ctx context.Context, config *envconf.Config) (context.Context, error) {
	build := exec.Command("go", "build", "-o", program, "sigs.k8s.io/controller-runtime/examples/crd")
	operator.Env = append(os.Environ(), "KUBECONFIG="+config.KubeconfigFile())
	build.Stderr, operator.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return ctx, err
	}
	return ctx, operator.Start()
}

func stop(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	operator.Process.Kill()
	operator.Wait()
	return ctx, os.Remove(program)
}

func TestAPodWhoseTimeHasComeIsMadeAnew(t *testing.T) {
	environment.Test(t, features.New("a chaos pod").Assess("is made anew", func(
		ctx context.Context, t *testing.T, config *envconf.Config,
	) context.Context {
		one := metav1.ObjectMeta{Name: "one", Namespace: "default"}
		resources, pod, owner := config.Client().Resources(), &corev1.Pod{}, &chaos.ChaosPod{ObjectMeta: one}
		owner.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "none"}}
		must(t, chaos.AddToScheme(resources.GetScheme()))
		// A kind that was just defined is served a moment later.
		made := func(ctx context.Context) (bool, error) { return resources.Create(ctx, owner) == nil, nil }
		must(t, wait.For(made, wait.WithTimeout(time.Minute), wait.WithInterval(time.Second/10)))
		runs := func(but types.UID) func(context.Context) (bool, error) {
			return func(ctx context.Context) (bool, error) {
				err := resources.Get(ctx, one.Name, one.Namespace, pod)
				return err == nil && pod.UID != but && pod.Status.Phase == corev1.PodRunning, nil
			}
		}
		must(t, wait.For(runs(""), wait.WithTimeout(time.Minute), wait.WithInterval(time.Second/10)))
		must(t, resources.Get(ctx, one.Name, one.Namespace, owner))
		owner.Spec.NextStop = metav1.NewTime(time.Now().Add(-time.Minute))
		must(t, resources.Update(ctx, owner))
		must(t, wait.For(runs(pod.UID), wait.WithTimeout(time.Minute), wait.WithInterval(time.Second/10)))
		return ctx
	}).Feature())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
