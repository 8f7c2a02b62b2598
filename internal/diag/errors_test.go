package diag

import "testing"

func TestErrorText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"open /a: b.log: no such file or directory", "/a：b.log：没有该文件或目录"},
		{"x.sif: corrupt SIF image: descriptor 3", "x.sif：SIF 镜像已损坏：descriptor 3"},
		{"x.sif: the SIF image is encrypted: its files can only be seen with its key or passphrase", "x.sif：SIF 镜像已加密：需要密钥或口令才能看到其中的文件"},
		{"unknown flag: --nope", "未知选项：--nope"},
		{"open source: what nobody translated", "open source: what nobody translated"},
		{`--since: "x" is neither a time nor an age`, `--since："x" 既不是时间，也不是时长`},
		{"", ""},
	} {
		if got := ErrorText(c.in, "zh"); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
		en := c.in
		if c.in == "open /a: b.log: no such file or directory" {
			en = "/a: b.log: no such file or directory"
		}
		if got := ErrorText(c.in, "en"); got != en {
			t.Errorf("%q: %q, want %q", c.in, got, en)
		}
	}
	if Reason("unexpected EOF", "zh") == "unexpected EOF" {
		t.Error("reasons do not take the words of errors")
	}
}
