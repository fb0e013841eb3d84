// Package page tests the web page in a real browser: Chromium, without a window, driven
// by its own protocol. Most tests serve the page from a server of this package that says
// what a test wants to see; one follows a real rollout.
package page
