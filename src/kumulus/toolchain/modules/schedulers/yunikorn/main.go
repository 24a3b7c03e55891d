// YuniKorn's scheduler without its web server, which listens on port 9080 of every address and cannot be told otherwise.
// Metrics and readiness are on the address given instead: yunikorn 127.0.0.1:20080.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/apache/yunikorn-core/pkg/entrypoint"
	"github.com/apache/yunikorn-k8shim/pkg/client"
	"github.com/apache/yunikorn-k8shim/pkg/conf"
	"github.com/apache/yunikorn-k8shim/pkg/plugin/predicates"
	"github.com/apache/yunikorn-k8shim/pkg/shim"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	if len(os.Args) != 2 {
		fail("usage: %s HOST:PORT", os.Args[0])
	}
	var ready atomic.Bool
	http.Handle("/metrics", promhttp.Handler())
	http.HandleFunc("/readyz", func(answer http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	go func() { fail("%v", http.ListenAndServe(os.Args[1], nil)) }()

	predicates.EnableOptionalKubernetesFeatureGates()
	configuration, err := client.LoadBootstrapConfigMaps()
	if err != nil {
		fail("the configuration cannot be read from the cluster: %v", err)
	}
	if err := conf.UpdateConfigMaps(configuration, true); err != nil {
		fail("the configuration cannot be used: %v", err)
	}
	core := entrypoint.StartAllServicesWithParams(false, false)
	scheduler := shim.NewShimScheduler(core.RMProxy, conf.GetSchedulerConf(), configuration)
	if err := scheduler.Run(); err != nil {
		fail("the scheduler ended: %v", err)
	}
	ready.Store(true)

	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGINT, syscall.SIGTERM)
	<-ends
	scheduler.Stop()
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}
