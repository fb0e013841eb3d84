// Package local finds free addresses of this machine, and reads pages of the programs that
// listen there.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// FreeAddress is one that nothing listens at. Another program may be faster to take it.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Get a page of a program, such as its metrics. Any status but 200 is an error, which has what
// the page says.
func Get(ctx context.Context, address, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s says %s: %s", path, response.Status, body)
	}
	return string(body), nil
}
