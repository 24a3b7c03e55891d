// What Kumulus changes of MultiKueue: how many requests a second it makes of a worker.
//
// Upstream makes its client of a worker from the kubeconfig alone, and so with client-go's default of 5 requests a
// second: a hub hands over no more than about two Jobs in three seconds to each, whatever the configuration's
// clientConnection says. Here a client of a worker may make as many as Kumulus configures for the hub itself.
package multikueue

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	qps   = 5000
	burst = 10000
)

// unhurried is clientcmd.RESTConfigFromKubeConfig, with these limits.
func unhurried(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = qps, burst
	return config, nil
}
