// Package example has a controller of controller-runtime, and its test on emulated nodes.
package example

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Broken is the label of nodes that are to take no more pods.
const Broken = "example.com/broken"

// Cordon makes nodes unschedulable that are labelled as broken.
type Cordon struct{ client.Client }

// Reconcile looks at one node.
func (c *Cordon) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := c.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := client.MergeFrom(node.DeepCopy())
	_, node.Spec.Unschedulable = node.Labels[Broken]
	return ctrl.Result{}, c.Patch(ctx, node, before)
}

// SetupWithManager has the manager run it.
func (c *Cordon) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&corev1.Node{}).Complete(c)
}
