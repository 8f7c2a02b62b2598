package nodes

import (
	"testing"
	"testing/fstest"

	"github.com/ncclinic/ncclinic/internal/source"
)

func TestFromHosts(t *testing.T) {
	const files = "passwd: files systemd\nhosts:  files dns # usual\n"
	for _, c := range []struct{ name, conf, hosts, ask, want string }{
		{"alias", files, "127.0.0.1 localhost\n10.1.0.5\tgpu5.cluster gpu5 # rack 2\n", "gpu5", "10.1.0.5"},
		{"case", files, "10.1.0.5 GPU5\n", "gpu5", "10.1.0.5"},
		{"twice the same", files, "10.1.0.5 gpu5\n10.1.0.5 gpu5 gpu5-ib\n", "gpu5", "10.1.0.5"},
		{"two addresses", files, "10.1.0.5 gpu5\n10.2.0.5 gpu5\n", "gpu5", ""},
		{"both families", files, "10.1.0.5 gpu5\nfd00::5 gpu5\n", "gpu5", ""},
		{"IPv6", files, "fd00::5 gpu5\n", "gpu5", ""},
		{"not there", files, "10.1.0.5 gpu50\n", "gpu5", ""},
		{"a comment", files, "#10.1.0.5 gpu5\n", "gpu5", ""},
		{"no address", files, "gpu5 gpu5\n", "gpu5", ""},
		{"another source first", "hosts: sss files dns\n", "10.1.0.5 gpu5\n", "gpu5", ""},
		{"found is not the end", "hosts: files [SUCCESS=merge] dns\n", "10.1.0.5 gpu5\n", "gpu5", ""},
		{"no configuration", "", "10.1.0.5 gpu5\n", "gpu5", ""},
	} {
		fsys := fstest.MapFS{"etc/hosts": {Data: []byte(c.hosts)}}
		if c.conf != "" {
			fsys["etc/nsswitch.conf"] = &fstest.MapFile{Data: []byte(c.conf)}
		}
		ip, ok := fromHosts(&source.Machine{FS: fsys}, c.ask)
		got := ""
		if ok {
			got = ip.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
