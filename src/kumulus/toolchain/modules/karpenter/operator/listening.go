// Where Karpenter answers for its metrics and its health.
package operator

import "os"

// listensOn is this machine alone, unless LISTEN_ADDRESS says otherwise: a kubelet asks a pod from outside of it. Empty,
// it is every address.
var listensOn = listenAddress()

func listenAddress() string {
	if address, said := os.LookupEnv("LISTEN_ADDRESS"); said {
		return address
	}
	return "127.0.0.1"
}
