// hello answers every HTTP request on port 8080 with the pod's name: what a test asks whether a pod really runs.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
)

func main() {
	name, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		fmt.Fprintf(answer, "hello from %s\n", name)
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}
