// Package provider makes emulated clusters for sigs.k8s.io/e2e-framework:
//
//	envfuncs.CreateCluster(provider.NewProvider(), "test")
package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"

	kumulus "github.com/kumulus-io/kumulus/contrib/go"
)

// Cluster is a provider of the framework's.
type Cluster struct {
	name    string
	options []kumulus.Option
	up      *kumulus.Cluster
}

var _ support.E2EClusterProvider = &Cluster{}

// NewProvider makes a provider of clusters with three nodes.
func NewProvider() support.E2EClusterProvider {
	return &Cluster{}
}

// With says what the cluster is like, as an option of the framework's CreateClusterWithOpts.
func With(options ...kumulus.Option) support.ClusterOpts {
	return func(provider support.E2EClusterProvider) {
		if cluster, ok := provider.(*Cluster); ok {
			cluster.options = append(cluster.options, options...)
		}
	}
}

// WithName sets the name by which the framework keeps it.
func (c *Cluster) WithName(name string) support.E2EClusterProvider {
	c.name = name
	return c
}

// WithVersion sets the version of Kubernetes.
func (c *Cluster) WithVersion(version string) support.E2EClusterProvider {
	c.options = append(c.options, kumulus.KubernetesVersion(version))
	return c
}

// WithPath has no effect: the command is the one on PATH, or what the variable KUMULUS names.
func (c *Cluster) WithPath(string) support.E2EClusterProvider {
	return c
}

// WithOpts applies options.
func (c *Cluster) WithOpts(options ...support.ClusterOpts) support.E2EClusterProvider {
	for _, option := range options {
		option(c)
	}
	return c
}

// SetDefaults changes nothing.
func (c *Cluster) SetDefaults() support.E2EClusterProvider {
	return c
}

// Create starts it and returns its kubeconfig's path.
func (c *Cluster) Create(ctx context.Context, _ ...string) (string, error) {
	up, err := kumulus.Start(ctx, c.options...)
	if err != nil {
		return "", err
	}
	c.up = up
	return up.Kubeconfig, nil
}

// CreateWithConfig starts it as a stack file says.
func (c *Cluster) CreateWithConfig(ctx context.Context, file string) (string, error) {
	c.options = append(c.options, kumulus.File(file))
	return c.Create(ctx)
}

// GetKubeconfig returns its kubeconfig's path.
func (c *Cluster) GetKubeconfig() string {
	if c.up == nil {
		return ""
	}
	return c.up.Kubeconfig
}

// GenerateKubeconfig returns its kubeconfig's path; there is one from the start.
func (c *Cluster) GenerateKubeconfig(...string) (string, error) {
	if c.up == nil {
		return "", fmt.Errorf("the cluster %s is not up", c.name)
	}
	return c.up.Kubeconfig, nil
}

// GetKubectlContext returns the kubeconfig's only context.
func (c *Cluster) GetKubectlContext() string {
	if c.up == nil {
		return ""
	}
	return "kwok-" + c.up.Name
}

// ExportLogs copies the components' logs into a folder.
func (c *Cluster) ExportLogs(_ context.Context, folder string) error {
	if c.up == nil {
		return fmt.Errorf("the cluster %s is not up", c.name)
	}
	return os.CopyFS(folder, os.DirFS(filepath.Join(filepath.Dir(c.up.Kubeconfig), "logs")))
}

// Destroy ends it.
func (c *Cluster) Destroy(context.Context) error {
	if c.up == nil {
		return nil
	}
	up := c.up
	c.up = nil
	return up.Stop()
}

// WaitForControlPlane returns at once: Create waits until every node is Ready.
func (c *Cluster) WaitForControlPlane(context.Context, klient.Client) error {
	return nil
}

// KubernetesRestConfig is what clients of the cluster are made from; nil before it is up.
func (c *Cluster) KubernetesRestConfig() *rest.Config {
	if c.up == nil {
		return nil
	}
	config, err := c.up.Config()
	if err != nil {
		return nil
	}
	return config
}
