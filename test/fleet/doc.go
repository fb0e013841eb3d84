// Package fleet tests the fleet on a hub and three member clusters, with the programs as
// processes, and the rights that the chart gives and no others.
package fleet
