package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// The space of everything at once is too large, so that it is cut into spaces that
// each have all of some of it. What of one instance depends on the others goes by
// how many are wanted and available, and by who comes first: four instances with
// coarse kubelets have all of that. What depends on the fine steps of a kubelet is
// about one pod: one and two instances have all of those.

// budget as users write it: a number, or a percentage.
func budget(b string) intstr.IntOrString { return intstr.Parse(b) }

// percentages are one of each kind: for up to four wanted instances every other one
// reduces to the same numbers as one of these.
func percentages() []string { return []string{"25%", "33%", "50%", "66%", "75%", "100%"} }

func numbers(n int) (out []string) {
	for b := range n {
		out = append(out, fmt.Sprint(b+1))
	}
	return out
}

// space returns what all spaces begin with.
func space(n int, rolling, forced string) Config {
	return Config{Instances: n, Rolling: budget(rolling), Forced: budget(forced), Gated: true, Images: 2,
		Policy: tappv1.InPlaceIfPossible, Name: fmt.Sprintf("%d instances, budgets %s and %s", n, rolling, forced)}
}

func (c Config) with(what string, change func(*Config)) Config {
	change(&c)
	c.Name += ", " + what
	return c
}

// variants are the fields of a spec that are not edited in a space.
func variants(c Config) []Config {
	return []Config{
		c,
		c.with("no gate", func(c *Config) { c.Gated = false }),
		c.with("ReCreate", func(c *Config) { c.Policy = tappv1.ReCreate }),
		c.with("InPlaceOnly", func(c *Config) { c.Policy = tappv1.InPlaceOnly }),
		c.with("paused", func(c *Config) { c.Paused = true }),
		c.with("paused, no gate", func(c *Config) { c.Paused, c.Gated = true, false }),
		c.with("late writes", func(c *Config) { c.Late = true }),
		c.with("late writes, no gate", func(c *Config) { c.Late, c.Gated = true, false }),
		c.with("minReadySeconds", func(c *Config) { c.MinReady = 10 }),
		c.with("finished pods kept", func(c *Config) { c.Keep = true }),
		c.with("nodes lost", func(c *Config) { c.Lost = true }),
		c.with("nodes lost, forceDeletePod", func(c *Config) { c.Lost, c.Force = true, true }),
	}
}

func all(c *Config) {
	c.Killed, c.Forces, c.Scaled, c.Ends, c.Crashes, c.Owners = true, true, true, true, true, true
}

func coarse(c *Config) { c.Coarse, c.Killed, c.Scaled = true, true, true }

// one instance: every step of its kubelet, three images, whoever does what.
func one(images uint8) []Config {
	return variants(space(1, "1", "1").with(fmt.Sprintf("%d images, all steps", images), func(c *Config) {
		all(c)
		c.Images = images
	}))
}

// two instances: every step of their kubelets, one budget.
func two() (out []Config) {
	for _, b := range numbers(2) {
		out = append(out, variants(space(2, b, "1").with("all steps", func(c *Config) { c.Ends = b == "1" }))...)
	}
	return out
}

// several instances with coarse kubelets, killed and scaled, and all pairs of budgets.
func several(n int) (out []Config) {
	for _, r := range numbers(n) {
		for _, f := range numbers(n) {
			out = append(out, space(n, r, f).with("coarse", func(c *Config) {
				coarse(c)
				c.Forces = true
			}))
		}
	}
	return out
}

// alike are several instances with coarse kubelets that all update by rolling.
func alike(n int, budgets []string) (out []Config) {
	for _, b := range budgets {
		out = append(out, space(n, b, "1").with("coarse, all rolling", coarse))
	}
	return out
}

// four instances: killed and started (where 25% is 1, and 100% is 4), or two of each kind with all pairs of budgets.
func four() (out []Config) {
	for _, b := range append(numbers(4), "33%", "50%", "66%", "75%") {
		out = append(out, space(4, b, "1").with("coarse, all rolling", func(c *Config) { c.Coarse, c.Killed = true, true }))
	}
	for _, roles := range []string{"rfrf", "fffr"} {
		for _, r := range numbers(4) {
			for _, f := range numbers(4) {
				if roles == "fffr" && r != f {
					continue
				}
				out = append(out, space(4, r, f).with("coarse, "+strings.NewReplacer("r", "rolling ", "f", "forced ").Replace(roles), func(c *Config) { c.Coarse, c.Roles = true, roles }))
			}
		}
	}
	return out
}

// small spaces, for every change: a fraction of all, that has one of each kind.
func small() []Config {
	out := append(one(2), several(2)...)
	out = append(out, alike(3, []string{"1", "2", "34%"})...)
	return append(out, variants(space(2, "1", "2").with("coarse, nodes lost", func(c *Config) {
		coarse(c)
		c.Lost = true
	}))...)
}

// whole is all spaces.
func whole() []Config {
	out := append(one(3), two()...)
	out = append(out, small()...)
	out = append(out, several(3)...)
	out = append(out, alike(3, percentages())...)
	return append(out, four()...)
}
