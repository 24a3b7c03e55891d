// Quotas, as a cloud has them: how much there may be of some machines at once, whoever has made them.
package kwok

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// The resource by which machines themselves are counted, as in a NodePool's limits.
const countOfNodes = corev1.ResourceName("nodes")

// machine is what a quota counts of one.
type machine struct {
	at       place
	capacity corev1.ResourceList
}

// registration is a machine whose node is still to come, and the claim that it was launched for.
type registration struct {
	claim string
	machine
}

// The labels by which a node says that its machine is a spot one, as in Kumulus' catalog.
var spotLabels = map[string]string{
	v1.CapacityTypeLabelKey:                 v1.CapacityTypeSpot,
	"eks.amazonaws.com/capacityType":        "SPOT",
	"cloud.google.com/gke-spot":             "true",
	"kubernetes.azure.com/scalesetpriority": "spot",
}

func machineOf(node *corev1.Node) machine {
	how := v1.CapacityTypeOnDemand
	for key, value := range spotLabels {
		if node.Labels[key] == value {
			how = v1.CapacityTypeSpot
		}
	}
	at := place{node.Labels[corev1.LabelInstanceTypeStable], node.Labels[corev1.LabelTopologyZone], how}
	return machine{at, node.Status.Capacity}
}

func (m machine) of(name corev1.ResourceName) resource.Quantity {
	if name == countOfNodes {
		return resource.MustParse("1")
	}
	return m.capacity[name]
}

// exceeded is whether a quota would be, with one more machine than there are.
func (c change) exceeded(there []machine, more machine) bool {
	for name, limit := range c.Limits {
		sum := more.of(name)
		for _, each := range there {
			if c.holds(each.at) {
				sum.Add(each.of(name))
			}
		}
		if sum.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// machines are all of the cluster, those that are still to register among them; none where no quota asks for them. The
// lock `launching` is held.
func (c CloudProvider) machines(ctx context.Context, changes []change) ([]machine, error) {
	if !slices.ContainsFunc(changes, func(each change) bool { return len(each.Limits) > 0 }) {
		return nil, nil
	}
	nodes := &corev1.NodeList{}
	if err := c.kubeClient.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing nodes, %w", err)
	}
	var found []machine
	for i := range nodes.Items {
		delete(registering, nodes.Items[i].Name)
		found = append(found, machineOf(&nodes.Items[i]))
	}
	for name, each := range registering {
		// A claim that is gone before its node was seen has none, or none any more.
		err := c.kubeClient.Get(ctx, types.NamespacedName{Name: each.claim}, &v1.NodeClaim{})
		if errors.IsNotFound(err) {
			delete(registering, name)
			continue
		}
		found = append(found, each.machine)
	}
	return found, nil
}

func (c CloudProvider) capacityOf(at place) corev1.ResourceList {
	for _, it := range c.instanceTypes {
		if it.Name == at.instanceType {
			return it.Capacity
		}
	}
	return nil
}
