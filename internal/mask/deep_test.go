package mask

import (
	"testing"
	"time"
)

func TestDeep(t *testing.T) {
	type setting struct{ Name, Value string }
	type leaf struct {
		V     any
		S     string
		Bytes []byte
		when  string
	}
	type tree struct {
		Taken time.Time
		Leaf  *leaf
		List  []setting
		Env   map[string]string
		None  *leaf
	}
	const url, masked = "https://u:hunter2@h/x", "https://***@h/x"
	x := tree{Taken: time.Unix(1, 0), Leaf: &leaf{S: url, when: url}, List: []setting{{"A_TOKEN", "abc"}, {"PLAIN", url}, {"B", "b"}}, Env: map[string]string{"X_PASSWORD": "abc", "Y": "y", "Z": url}}
	Deep(&x)
	if x.Leaf.S != masked || x.List[0].Value != Hidden || x.List[1].Value != masked || x.List[2].Value != "b" ||
		x.Env["X_PASSWORD"] != Hidden || x.Env["Y"] != "y" || x.Env["Z"] != masked {
		t.Errorf("%+v %+v", x, *x.Leaf)
	}
	if !x.Taken.Equal(time.Unix(1, 0)) || x.Leaf.when != url {
		t.Error("a field that is not exported was changed")
	}
	Deep(nil)
}
