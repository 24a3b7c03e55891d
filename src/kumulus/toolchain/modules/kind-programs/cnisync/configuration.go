package main

import (
	"fmt"
	"os"
)

const (
	file = "/etc/cni/net.d/10-kind.conflist"
	// The plugins are those of Debian's containernetworking-plugins.
	configuration = `{
  "cniVersion": "0.4.0",
  "name": "kind",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": true,
      "mtu": 1500,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-ipam-state",
        "routes": [{"dst": "0.0.0.0/0"}],
        "ranges": [[{"subnet": %q}]]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`
)

// writeConfiguration puts the file in place whole: containerd reads it as soon as it is there.
func writeConfiguration(subnet string) error {
	unfinished := file + ".new"
	if err := os.WriteFile(unfinished, fmt.Appendf(nil, configuration, subnet), 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, file)
}
