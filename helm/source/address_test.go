package source

import "testing"

func TestJudge(t *testing.T) {
	for address, public := range map[string]bool{
		"8.8.8.8:443": true, "[2606:4700::1111]:443": true, "172.32.0.1:443": true, "[64:ff9b::808:808]:443": true,
		"10.0.0.1:443": false, "172.16.0.1:443": false, "192.168.1.1:443": false, "127.0.0.1:443": false, "169.254.169.254:80": false,
		"100.64.0.1:443": false, "0.0.0.0:443": false, "224.0.0.1:443": false, "255.255.255.255:443": false, "198.18.0.1:443": false, "192.0.0.192:443": false,
		"[::1]:443": false, "[::]:443": false, "[fe80::1]:443": false, "[fd00::1]:443": false, "[ff02::1]:443": false,
		"[::ffff:10.0.0.1]:443": false, "[64:ff9b::a00:1]:443": false, "[64:ff9b:1::1]:443": false, "[2002:a00:1::]:443": false, "nonsense": false,
	} {
		if err := judge(address); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
}
