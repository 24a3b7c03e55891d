// cnisync gives a kind node its pod network: it writes the CNI configuration for the node's range of pod addresses, and
// keeps a route to the range of every other kind node. KWOK's nodes have neither pods to reach nor an address; of them
// no more than their names is kept, since there may be ten thousand.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// How often every node is looked at again, for a route that somebody else has taken away.
const resync = time.Minute

func main() {
	log.SetFlags(log.Ltime)
	client, err := connect(os.Getenv("CONTROL_PLANE_ENDPOINT"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	network := &network{node: os.Getenv("NODE_NAME")}
	factory := informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(slim))
	_, err = factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { report(network.join(object)) },
		UpdateFunc: func(_, object any) { report(network.join(object)) },
		DeleteFunc: func(object any) { report(network.leave(object)) },
	})
	if err != nil {
		log.Fatal(err)
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
}

// connect goes to the control plane by its container's name where kind tells it: kube-proxy may not serve yet.
func connect(endpoint string) (kubernetes.Interface, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	if endpoint != "" {
		config.Host = "https://" + endpoint
	}
	return kubernetes.NewForConfig(config)
}

// slim drops what is not needed before a node is kept. What it has made it may get again, and leaves as it is.
func slim(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion}}
	if strings.HasPrefix(node.Spec.ProviderID, "kind://") {
		kept.Spec.ProviderID, kept.Spec.PodCIDR = node.Spec.ProviderID, node.Spec.PodCIDR
		kept.Status.Addresses = node.Status.Addresses
	}
	return kept, nil
}

type network struct {
	node    string
	written string
}

// join makes the pods of a node reachable; for this node itself, lets it have pods.
func (n *network) join(object any) error {
	node, ok := object.(*corev1.Node)
	if !ok || node.Spec.PodCIDR == "" {
		return nil
	}
	if node.Name == n.node {
		return n.configure(node.Spec.PodCIDR)
	}
	for _, route := range routes(node) {
		if err := netlink.RouteReplace(&route); err != nil {
			return errors.Join(errors.New("route to "+node.Name), err)
		}
	}
	return nil
}

func (n *network) leave(object any) error {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	node, ok := object.(*corev1.Node)
	if !ok || node.Name == n.node {
		return nil
	}
	for _, route := range routes(node) {
		if err := netlink.RouteDel(&route); err != nil && !errors.Is(err, syscall.ESRCH) {
			return errors.Join(errors.New("route to "+node.Name), err)
		}
	}
	return nil
}

func (n *network) configure(subnet string) error {
	if n.written == subnet {
		return nil
	}
	if err := writeConfiguration(subnet); err != nil {
		return err
	}
	n.written = subnet
	log.Print("pods of this node get addresses of ", subnet)
	return nil
}

func routes(node *corev1.Node) []netlink.Route {
	_, subnet, err := net.ParseCIDR(node.Spec.PodCIDR)
	if err != nil {
		return nil
	}
	var found []netlink.Route
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			found = append(found, netlink.Route{Dst: subnet, Gw: net.ParseIP(address.Address)})
		}
	}
	return found
}

func report(err error) {
	if err != nil {
		log.Print(err)
	}
}
