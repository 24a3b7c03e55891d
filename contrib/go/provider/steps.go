package provider

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/e2e-framework/klient/decoder"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"
)

const servedWithin = 30 * time.Second

// Run starts a program, such as an operator, with the kubeconfig of a cluster of this name. It ends with the cluster.
func Run(cluster, name string, arguments ...string) env.Func {
	return func(ctx context.Context, _ *envconf.Config) (context.Context, error) {
		found, _ := envfuncs.GetClusterFromContext(ctx, cluster)
		if made, ok := found.(*Cluster); ok && made.up != nil {
			return ctx, made.up.Run(name, arguments...)
		}
		return ctx, fmt.Errorf("%s: there is no cluster %s of this provider to run it with", name, cluster)
	}
}

// CreateObjects creates what is in files, such as config/crd/bases/*, in their order. What names no namespace comes into that
// of the environment, or default; a kind that a CRD has just defined is waited for until it is served.
func CreateObjects(patterns ...string) env.Func {
	return func(ctx context.Context, config *envconf.Config) (context.Context, error) {
		for _, pattern := range patterns {
			count := 0
			folder := os.DirFS(filepath.Dir(pattern))
			each := func(ctx context.Context, object k8s.Object) error {
				count++
				return create(ctx, config, object)
			}
			err := decoder.DecodeEachFile(ctx, folder, filepath.Base(pattern), each)
			if err == nil && count == 0 {
				err = fmt.Errorf("%s: there is no object in such files", pattern)
			}
			if err != nil {
				return ctx, err
			}
		}
		return ctx, nil
	}
}

func create(ctx context.Context, config *envconf.Config, object k8s.Object) error {
	client := config.Client().Resources().GetControllerRuntimeClient()
	var last error
	if err := wait.For(func(ctx context.Context) (bool, error) {
		namespaced, err := client.IsObjectNamespaced(object)
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(namespace(config))
		}
		if err == nil {
			err = client.Create(ctx, object)
		}
		if last = err; meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	}, append(looking(ctx), wait.WithTimeout(servedWithin))...); err != nil {
		return fmt.Errorf("%s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), last)
	}
	return nil
}

// Until is a step of a feature that waits until an object has a condition, as kubectl does by
// `wait deployment/web --for=condition=Available`: up to five minutes, as the framework waits.
func Until(object, condition string) features.Func {
	return func(ctx context.Context, t *testing.T, config *envconf.Config) context.Context {
		resource, name, _ := strings.Cut(object, "/")
		client := config.Client().Resources()
		kind, err := client.GetControllerRuntimeClient().RESTMapper().KindFor(
			schema.ParseGroupResource(resource).WithVersion(""))
		if err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(kind)
		if err := wait.For(func(ctx context.Context) (bool, error) {
			err := client.Get(ctx, name, namespace(config), found)
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return has(found, condition), err
		}, looking(ctx)...); err != nil {
			t.Fatalf("%s is not %s: %v; its status: %v", object, condition, err, found.Object["status"])
		}
		return ctx
	}
}

func has(object *unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		each, _ := one.(map[string]any)
		return each["type"] == condition && each["status"] == "True"
	})
}

func looking(ctx context.Context) []wait.Option {
	return []wait.Option{wait.WithContext(ctx), wait.WithImmediate(), wait.WithInterval(200 * time.Millisecond)}
}

func namespace(config *envconf.Config) string {
	return cmp.Or(config.Namespace(), "default")
}
