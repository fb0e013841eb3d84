package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Node is what matters here of a Node object.
type Node struct {
	Name      string
	Ready     bool
	Simulated bool
	Message   string    // of the condition Ready
	Heartbeat time.Time // when its kubelet said so, in whole seconds
}

// Nodes lists all nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name        string            `json:"name"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
			Status struct {
				Conditions []struct {
					Type    string `json:"type"`
					Status  string `json:"status"`
					Message string `json:"message"`

					LastHeartbeatTime time.Time `json:"lastHeartbeatTime"`
				} `json:"conditions"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := c.Get(ctx, "/api/v1/nodes?resourceVersion=0", &list); err != nil {
		return nil, err
	}
	var nodes []Node
	for _, item := range list.Items {
		n := Node{Name: item.Metadata.Name, Simulated: item.Metadata.Annotations["kwok.x-k8s.io/node"] == "fake"}
		for _, condition := range item.Status.Conditions {
			if condition.Type == "Ready" {
				n.Ready, n.Message, n.Heartbeat = condition.Status == "True", condition.Message, condition.LastHeartbeatTime
			}
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// IsNotFound tells whether the server answered that there is no such object.
func IsNotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}
