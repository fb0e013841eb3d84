// Package server is `tapp api`: its flags, and the API served by TLS.
package server
