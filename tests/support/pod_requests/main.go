// Answers what Kubernetes' own helper counts as requested by pods: a JSON list of pods in, a list of amounts in
// billionths out. It is the oracle of tests/unit/test_pod_requests.py and no part of the product.
package main

import (
	"encoding/json"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

func main() {
	var pods []v1.Pod
	if err := json.NewDecoder(os.Stdin).Decode(&pods); err != nil {
		panic(err)
	}
	answers := make([]map[string]string, len(pods))
	for i := range pods {
		answers[i] = map[string]string{}
		for name, quantity := range resource.PodRequests(&pods[i], resource.PodResourcesOptions{}) {
			answers[i][string(name)] = quantity.AsDec().String()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		panic(err)
	}
}
