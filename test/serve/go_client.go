// Profiles this process as pyroscope-go does, and sends each profile to /ingest with the same form and parameters. The times of the
// rounds are an hour ago, so that rounds of a moment stand for rounds of minutes.
// Arguments: URL of the server, key, folder for a copy of each profile, number of rounds, start in seconds since 1970, seconds of a round.
// SPDX-License-Identifier: MIT
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"
)

type sampleType struct {
	Units       string `json:"units,omitempty"`
	Aggregation string `json:"aggregation,omitempty"`
	DisplayName string `json:"display-name,omitempty"`
	Sampled     bool   `json:"sampled,omitempty"`
	Cumulative  bool   `json:"cumulative,omitempty"`
}

// The parameters and types of each profile: those of pyroscope-go for profiles that count since the start of the process.
var kinds = []struct {
	name, units, aggregation string
	sampleRate               int
	types                    map[string]sampleType
}{
	{"cpu", "samples", "sum", 100, nil},
	{"heap", "", "", 100, map[string]sampleType{
		"alloc_objects": {Units: "objects", Cumulative: true},
		"alloc_space":   {Units: "bytes", Cumulative: true},
		"inuse_objects": {Units: "objects", Aggregation: "average"},
		"inuse_space":   {Units: "bytes", Aggregation: "average"},
	}},
	{"mutex", "", "", 0, map[string]sampleType{
		"contentions": {DisplayName: "mutex_count", Units: "lock_samples", Cumulative: true},
		"delay":       {DisplayName: "mutex_duration", Units: "lock_nanoseconds", Cumulative: true},
	}},
	{"block", "", "", 0, map[string]sampleType{
		"contentions": {DisplayName: "block_count", Units: "lock_samples", Cumulative: true},
		"delay":       {DisplayName: "block_duration", Units: "lock_nanoseconds", Cumulative: true},
	}},
	{"goroutine", "goroutines", "average", 0, map[string]sampleType{
		"goroutine": {DisplayName: "goroutines", Units: "goroutines", Aggregation: "average"},
	}},
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	must(err)
	return value
}

// --- Work ---------------------------------------------------------------------------------------------------------------------------

var kept [][]byte

func burnCPU(until time.Time) (sum float64) {
	for time.Now().Before(until) {
		for i := 1.0; i < 1000; i++ {
			sum += 1 / i
		}
	}
	return sum
}

func allocate() {
	for i := 0; i < 200; i++ {
		kept = append(kept, make([]byte, 10000))
	}
}

func contend() {
	var mutex sync.Mutex
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			mutex.Lock()
			time.Sleep(2 * time.Millisecond)
			mutex.Unlock()
		}()
	}
	all.Wait()
}

func waitForever(never chan int) { <-never }

// --- Sending ------------------------------------------------------------------------------------------------------------------------

func upload(server, key, name string, kind int, start, end time.Time, profile []byte) {
	body := &bytes.Buffer{}
	form := multipart.NewWriter(body)
	part, err := form.CreateFormFile("profile", "profile.pprof")
	must(err)
	_, _ = part.Write(profile)
	if kinds[kind].types != nil {
		part, err = form.CreateFormFile("sample_type_config", "sample_type_config.json")
		must(err)
		config, err := json.Marshal(kinds[kind].types)
		must(err)
		_, _ = part.Write(config)
	}
	must(form.Close())

	query := url.Values{}
	query.Set("name", name)
	query.Set("from", strconv.FormatInt(start.UnixNano(), 10))
	query.Set("until", strconv.FormatInt(end.UnixNano(), 10))
	query.Set("spyName", "gospy")
	query.Set("sampleRate", strconv.Itoa(kinds[kind].sampleRate))
	query.Set("units", kinds[kind].units)
	query.Set("aggregationType", kinds[kind].aggregation)
	request, err := http.NewRequest(http.MethodPost, server+"/ingest?"+query.Encode(), body)
	must(err)
	request.Header.Set("Content-Type", form.FormDataContentType())
	request.SetBasicAuth("user", key)
	answer, err := http.DefaultClient.Do(request)
	must(err)
	text, err := io.ReadAll(answer.Body)
	must(err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		must(fmt.Errorf("%s: %d %s", kinds[kind].name, answer.StatusCode, text))
	}
}

func take(name string, cpu *bytes.Buffer) []byte {
	if name == "cpu" {
		return cpu.Bytes()
	}
	out := &bytes.Buffer{}
	must(pprof.Lookup(name).WriteTo(out, 0))
	return out.Bytes()
}

func main() {
	server, key, folder := os.Args[1], os.Args[2], os.Args[3]
	rounds, start, step := number(os.Args[4]), time.Unix(number(os.Args[5]), 0), time.Duration(number(os.Args[6]))*time.Second
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	never := make(chan int)
	application := "go.shop{__session_id__=0f3c9b1e77a04d21,env=live,hostname=h1,otel.scope.name=com.grafana.pyroscope/go,process.runtime.name=go}"
	for round := int64(0); round < rounds; round++ {
		cpu := &bytes.Buffer{}
		go waitForever(never)
		must(pprof.StartCPUProfile(cpu))
		burnCPU(time.Now().Add(60 * time.Millisecond))
		allocate()
		contend()
		pprof.StopCPUProfile()
		runtime.GC()
		begin := start.Add(time.Duration(round) * step)
		for i, kind := range kinds {
			profile := take(kind.name, cpu)
			must(os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%03d.pb.gz", kind.name, round)), profile, 0o600))
			upload(server, key, application, i, begin, begin.Add(step), profile)
		}
	}
}
