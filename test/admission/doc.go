// Package admission tests the webhooks behind a real API server, by what users of
// kubectl see. The server runs in the process of the tests.
package admission
