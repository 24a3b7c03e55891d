// What Kumulus adds to Karpenter's provider for KWOK: offerings that are sold out, have a quota or another price, and
// drawn delays, while the program runs. All of it is in annotations of the node class, which whoever changes it writes.
//
// A sold-out offering is met as a cloud's is: Karpenter does not know before it asks. Create tries the offerings of a
// claim from the cheapest to the dearest; those that are sold out, or beyond a quota, are remembered and not offered for
// three minutes, as karpenter-provider-aws does (UnavailableOfferingsTTL in pkg/cache/cache.go, and its error codes
// InsufficientInstanceCapacity and VcpuLimitExceeded in pkg/errors/errors.go); if none is left, the claim fails for
// insufficient capacity.
package kwok

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

const (
	changesAnnotation = "kumulus.io/offerings"
	delaysAnnotation  = "kumulus.io/registration-delays"
	rememberedFor     = 3 * time.Minute
)

// change is what holds for the offerings that it selects; an empty list selects all, and `*` in a name any characters.
type change struct {
	Zones         []string            `json:"zones"`
	InstanceTypes []string            `json:"instanceTypes"`
	CapacityTypes []string            `json:"capacityTypes"`
	SoldOut       bool                `json:"soldOut"`
	PriceFactor   float64             `json:"priceFactor"`
	Limits        corev1.ResourceList `json:"limits"`
}

// place is what one offering is told from another by.
type place struct{ instanceType, zone, capacityType string }

var (
	lock       sync.Mutex
	remembered = map[place]time.Time{}
	launched   int
	launching  sync.Mutex
	// The machines that have been launched and whose nodes have not been seen yet, by the node's name.
	registering = map[string]registration{}
)

func (c change) holds(at place) bool {
	selects := func(among []string, value string) bool {
		return len(among) == 0 || slices.ContainsFunc(among, func(pattern string) bool {
			fits, err := path.Match(pattern, value)
			return err == nil && fits
		})
	}
	return selects(c.InstanceTypes, at.instanceType) && selects(c.Zones, at.zone) && selects(c.CapacityTypes, at.capacityType)
}

func placeOf(it *cloudprovider.InstanceType, of *cloudprovider.Offering) place {
	return place{
		instanceType: it.Name,
		zone:         of.Requirements.Get(corev1.LabelTopologyZone).Any(),
		capacityType: of.Requirements.Get(v1.CapacityTypeLabelKey).Any(),
	}
}

func (c CloudProvider) changes(ctx context.Context, nodeClass string) ([]change, error) {
	found := &v1alpha1.KWOKNodeClass{}
	if err := c.kubeClient.Get(ctx, types.NamespacedName{Name: nodeClass}, found); err != nil {
		if errors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading node class, %w", err)
	}
	written := found.Annotations[changesAnnotation]
	if written == "" {
		return nil, nil
	}
	var changes []change
	if err := json.Unmarshal([]byte(written), &changes); err != nil {
		return nil, fmt.Errorf("annotation %s of node class %s, %w", changesAnnotation, nodeClass, err)
	}
	return changes, nil
}

// known are the instance types as Karpenter can know them: at the prices of now, without what was found sold out.
func (c CloudProvider) known(ctx context.Context, nodeClass string) ([]*cloudprovider.InstanceType, error) {
	changes, err := c.changes(ctx, nodeClass)
	if err != nil {
		return nil, err
	}
	return c.changed(changes, func(at place) bool {
		until, found := remembered[at]
		return found && time.Now().Before(until)
	}), nil
}

// changed are copies of the instance types with the prices of now; of offerings for which `without` holds, none is available.
func (c CloudProvider) changed(changes []change, without func(place) bool) []*cloudprovider.InstanceType {
	lock.Lock()
	defer lock.Unlock()
	found := make([]*cloudprovider.InstanceType, 0, len(c.instanceTypes))
	for _, it := range c.instanceTypes {
		offerings := make(cloudprovider.Offerings, 0, len(it.Offerings))
		for _, of := range it.Offerings {
			at, price := placeOf(it, of), of.Price
			for _, each := range changes {
				if each.PriceFactor > 0 && each.holds(at) {
					price *= each.PriceFactor
				}
			}
			offerings = append(offerings, &cloudprovider.Offering{
				ReservationCapacity: of.ReservationCapacity,
				Requirements:        of.Requirements,
				Price:               price,
				Available:           of.Available && !without(at),
			})
		}
		found = append(found, &cloudprovider.InstanceType{
			Name: it.Name, Requirements: it.Requirements, Offerings: offerings, Capacity: it.Capacity, Overhead: it.Overhead,
		})
	}
	return found
}

// launch is toNode with what can be had now.
func (c CloudProvider) launch(ctx context.Context, nodeClaim *v1.NodeClaim) (*corev1.Node, error) {
	// One after the other: two that are launched at once would each find a quota's last machine free.
	launching.Lock()
	defer launching.Unlock()
	changes, err := c.changes(ctx, nodeClaim.Spec.NodeClassRef.Name)
	if err != nil {
		return nil, err
	}
	there, err := c.machines(ctx, changes)
	if err != nil {
		return nil, err
	}
	soldOut := func(at place) bool {
		return slices.ContainsFunc(changes, func(each change) bool {
			return each.holds(at) && (each.SoldOut || each.exceeded(there, machine{at, c.capacityOf(at)}))
		})
	}
	claim := nodeClaim.DeepCopy()
	index := slices.IndexFunc(claim.Spec.Requirements, func(req v1.NodeSelectorRequirementWithMinValues) bool {
		return req.Key == corev1.LabelInstanceTypeStable
	})
	if index < 0 {
		return c.toNode(nodeClaim)
	}
	requirements := scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...)
	type attempt struct {
		at    place
		price float64
	}
	var attempts []attempt
	for _, it := range c.changed(changes, func(place) bool { return false }) {
		if !slices.Contains(claim.Spec.Requirements[index].Values, it.Name) {
			continue
		}
		for _, of := range it.Offerings.Available().Compatible(requirements) {
			attempts = append(attempts, attempt{placeOf(it, of), of.Price})
		}
	}
	// Of several at one price any may come first, as upstream has it.
	rand.Shuffle(len(attempts), func(i, j int) { attempts[i], attempts[j] = attempts[j], attempts[i] })
	slices.SortStableFunc(attempts, func(a, b attempt) int {
		switch {
		case a.price < b.price:
			return -1
		case a.price > b.price:
			return 1
		}
		return 0
	})
	var missed []string
	for _, each := range attempts {
		if !soldOut(each.at) {
			claim.Spec.Requirements[index].Values = []string{each.at.instanceType}
			c.instanceTypes = c.changed(changes, soldOut)
			node, err := c.toNode(claim)
			if err == nil {
				registering[node.Name] = registration{nodeClaim.Name, machineOf(node)}
			}
			return node, err
		}
		lock.Lock()
		remembered[each.at] = time.Now().Add(rememberedFor)
		lock.Unlock()
		missed = append(missed, fmt.Sprintf("%s in %s (%s)", each.at.instanceType, each.at.zone, each.at.capacityType))
	}
	return nil, cloudprovider.NewInsufficientCapacityError(
		fmt.Errorf("nothing that the claim allows can be had: %s", strings.Join(missed, ", ")))
}

// registrationDelay is the node class's, or the next of those that were drawn for it.
func registrationDelay(nodeClass *v1alpha1.KWOKNodeClass) time.Duration {
	drawn := strings.Fields(nodeClass.Annotations[delaysAnnotation])
	if len(drawn) == 0 {
		return nodeClass.Spec.NodeRegistrationDelay.Duration
	}
	lock.Lock()
	next := drawn[launched%len(drawn)]
	launched++
	lock.Unlock()
	seconds, err := strconv.ParseFloat(next, 64)
	if err != nil {
		return nodeClass.Spec.NodeRegistrationDelay.Duration
	}
	return time.Duration(seconds * float64(time.Second))
}
