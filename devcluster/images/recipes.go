package images

import (
	"strconv"
	"strings"
)

// The programs of ours, as directories of the module.
const (
	demo  = "demo"
	pause = "demo/pause"
)

// recipe is one image.
type recipe struct {
	reference string
	program   string // demo, pause, or a binary's path
	call      string // its first argument, where the program is several in one
	user      string // numeric, so that runAsNonRoot can be checked
	env       []string
}

// recipes lists all images, in the order in which a cluster needs them.
func recipes(addons string) []recipe {
	all := []recipe{{reference: Pause, program: pause, user: "65535"}}
	if addons != "" {
		all = append(all,
			recipe{reference: CoreDNS, program: addons, call: "coredns", user: "0"}, // port 53
			recipe{reference: CertManager, program: addons, call: "certmanager", user: "65532"},
			recipe{reference: MetricsServer, program: addons, call: "metrics-server", user: "65532"})
	}
	for _, reference := range []string{Nginx177, Nginx178, Nginx179, Nginx181, Nginx183, Nginx125, Nginx127, NginxLatest} {
		_, version, _ := strings.Cut(reference, ":")
		// Port 80 needs root: containerd leaves ip_unprivileged_port_start alone unless told otherwise.
		all = append(all, recipe{reference: reference, program: demo, user: "0", env: environment("nginx", version, 80)})
	}
	all = append(all, recipe{reference: Tomcat, program: demo, user: "0", env: environment("tomcat", "latest", DemoPort)})
	for _, v := range []struct {
		reference, version string
		env                []string
	}{
		{DemoV1, "v1", nil},
		{DemoV1Same, "v1", nil},
		{DemoV2, "v2", nil},
		{DemoV3, "v3", nil},
		{DemoCrash, "crash", []string{"DEMO_CRASH_AFTER=300ms"}},
		{DemoDone, "done", []string{"DEMO_EXIT_AFTER=300ms"}},
		{DemoUnready, "unready", []string{"DEMO_UNREADY=1"}},
		{DemoSlow, "slow", []string{"DEMO_START_DELAY=5s"}},
	} {
		all = append(all, recipe{
			reference: v.reference, program: demo, user: "65532",
			env: append(environment("demo", v.version, DemoPort), v.env...),
		})
	}
	return all
}

func environment(name, version string, port int) []string {
	return []string{"DEMO_NAME=" + name, "DEMO_VERSION=" + version, "PORT=" + strconv.Itoa(port)}
}
