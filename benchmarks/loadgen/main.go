// Loadgen posts ready-made bodies to an API server as fast as the server takes them: the limit that the node pool's
// speed is compared with. It does nothing else: no parsing, no retries, no checks beyond the status code.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	server := flag.String("server", "", "address of the API server")
	path := flag.String("path", "/api/v1/nodes", "where to post")
	ca := flag.String("ca", "", "certificate authority file")
	cert := flag.String("cert", "", "client certificate file")
	key := flag.String("key", "", "client key file")
	bodies := flag.String("bodies", "", "file with bodies, each after its length in four bytes")
	mediaType := flag.String("media-type", "application/json", "of the bodies, and asked for in return")
	connections := flag.Int("connections", 64, "connections, and so requests at once")
	flag.Parse()

	items, err := read(*bodies)
	check(err)
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	check(err)
	pem, err := os.ReadFile(*ca)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots},
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1: one request a connection
		MaxIdleConnsPerHost: *connections,
		MaxConnsPerHost:     *connections,
	}}

	var next, failed atomic.Int64
	var wait sync.WaitGroup
	started := time.Now()
	for range *connections {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for {
				index := int(next.Add(1)) - 1
				if index >= len(items) {
					return
				}
				request, err := http.NewRequest(http.MethodPost, *server+*path, bytes.NewReader(items[index]))
				check(err)
				request.Header.Set("Content-Type", *mediaType)
				request.Header.Set("Accept", *mediaType)
				response, err := client.Do(request)
				if err != nil {
					failed.Add(1)
					continue
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
				if response.StatusCode != http.StatusCreated {
					failed.Add(1)
				}
			}
		}()
	}
	wait.Wait()
	seconds := time.Since(started).Seconds()
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"requests": len(items), "failed": failed.Load(), "seconds": seconds, "rate": float64(len(items)) / seconds,
	}))
}

func read(name string) ([][]byte, error) {
	all, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var found [][]byte
	for len(all) > 0 {
		end := 4 + binary.BigEndian.Uint32(all)
		found = append(found, all[4:end])
		all = all[end:]
	}
	return found, nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadgen:", err)
		os.Exit(1)
	}
}
