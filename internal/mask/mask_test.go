package mask

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain text, rank 3: 2.5.1+cu121", "plain text, rank 3: 2.5.1+cu121"},
		{"https://user:pw@host/simple", "https://***@host/simple"},
		{"https://ghp_0123456789abcdefghij@github.com/x", "https://***@github.com/x"},
		{"http://u:p@ss@h:8080/x?a=b", "http://***@h:8080/x?a=b"},
		{"ssh://git@github.com/x", "ssh://git@github.com/x"},
		{"/x/https:/user:pw@host/bin/python", "/x/https:/***@host/bin/python"},
		{"see http://a/b and mail me@x.org", "see http://a/b and mail me@x.org"},
		{"https://h/x?access_token=abc&b=1", "https://h/x?access_token=***&b=1"},
		{"https://h/x?X-Amz-Signature=abcdef", "https://h/x?X-Amz-Signature=***"},
		{"Authorization: Bearer abc.def-ghi_jkl", "Authorization: Bearer ***"},
		{"authorization: token 0123456789", "authorization: token ***"},
		{`{"token": "abc", "x": 1}`, `{"token": "***", "x": 1}`},
		{"wandb login --api-key 0123456789abcdef x", "wandb login --api-key *** x"},
		{"export WANDB_API_KEY=0123; python x", "export WANDB_API_KEY=***; python x"},
		{"HF_TOKEN='a b c' y", "HF_TOKEN='***' y"},
		{"login hf_abcdefghijklmnopqrst ok", "login hf_*** ok"},
		{"AKIAIOSFODNN7EXAMPLE", "AKIA***"},
		{"xoxb-12345678-abc", "xoxb-***"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF", "eyJ***"},
		{"SyntaxError: unexpected token: foo", "SyntaxError: unexpected token: foo"},
		{"eos_token=</s> pad_token_id=0 max_tokens=5", "eos_token=</s> pad_token_id=0 max_tokens=5"},
		{"git 134179474539648ba7dee1317959529fbd0e7f89", "git 134179474539648ba7dee1317959529fbd0e7f89"},
		{"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----\n***-----END RSA PRIVATE KEY-----"},
		{"password=", "password="},
		{"password: hunter2", "password: ***"},
		{"mysql -u root -pS3cret! db", "mysql -u root -p*** db"},
		{"mysql -u root -p db", "mysql -u root -p db"},
		{"mysqldump -p'a b' db; tar -pxf x", "mysqldump -p'***' db; tar -pxf x"},
		{"sshpass -p hunter2 ssh n1", "sshpass -p *** ssh n1"},
		{"sshpass -p $PW ssh n1", "sshpass -p $PW ssh n1"},
		{"curl -u me:pa55 https://h/x", "curl -u me:*** https://h/x"},
		{"curl -u me https://h/x:80", "curl -u me https://h/x:80"},
		{"docker login -u a -p zz99 && docker run -p 80:80 x", "docker login -u a -p *** && docker run -p 80:80 x"},
		{"redis-cli -a pw1 ping", "redis-cli -a *** ping"},
		{"wandb login --relogin 0123456789abcdef0123456789abcdef01234567", "wandb login --relogin ***"},
		{"wandb: Run data is saved in run-20240101_120000-abcdefgh1", "wandb: Run data is saved in run-20240101_120000-abcdefgh1"},
		{"--wandb-key 0123abc x", "--wandb-key *** x"},
		{"PGPASSWORD=q psql", "PGPASSWORD=*** psql"},
		{"DB_PASS=q forward_pass=2", "DB_PASS=*** forward_pass=2"},
		{"machine a login user password 0123456789abcdef", "machine a login user password ***"},
		{"aws configure set aws_secret_access_key wJalrXUtnFEMI/K7MDENG/bPx", "aws configure set aws_secret_access_key ***"},
		{"token tensor_parallel_size=8", "token tensor_parallel_size=8"},
		{"unexpected token node17.cluster.example:29500", "unexpected token node17.cluster.example:29500"},
		{"/etc/passwd: not a wheel", "/etc/passwd: not a wheel"},
		{"open token.out: permission denied", "open token.out: permission denied"},
		{"spring.datasource.password: hunter2x", "spring.datasource.password: ***"},
		{"KeyError: 'model.key'", "KeyError: 'model.key'"},
		{"curl -sSu bob:X https://h; curl --user=bob:X h", "curl -sSu bob:*** https://h; curl --user=bob:*** h"},
		{"curl \\\n  -u bob:X h\n-u a:b", "curl \\\n  -u bob:*** h\n-u a:b"},
		{"['curl', '-u', 'bob:X', 'h', '--token', 'abc', '--lr']", "['curl', '-u', 'bob:***', 'h', '--token', '***', '--lr']"},
		{"curl -u $U:$P h", "curl -u $U:$P h"},
		{"PW=X PASS='a b' PASS=3 pass=0.85", "PW=*** PASS='***' PASS=3 pass=0.85"},
		{"PASS: test_x\nPASS tests/a.py", "PASS: test_x\nPASS tests/a.py"},
		{"t.py --pat X --key Y --api-key Z --key=abc", "t.py --pat *** --key *** --api-key *** --key=***"},
		{"t.py --pat *.py --key ~/.ssh/id; sort --key 2,2", "t.py --pat *.py --key ~/.ssh/id; sort --key 2,2"},
		{"mongosh -p X; ssh n1 -p 22; unzip -P X a.zip; ldapsearch -w X; ipmitool -P X", "mongosh -p ***; ssh n1 -p 22; unzip -P *** a.zip; ldapsearch -w ***; ipmitool -P ***"},
		{"podman login -pX r; skopeo copy --src-creds a:X b", "podman login -p*** r; skopeo copy --src-creds a:*** b"},
		{"openssl x -passin pass:X; openssl x -passin env:X; smbclient -U a%X //h", "openssl x -passin pass:***; openssl x -passin env:X; smbclient -U a%*** //h"},
		{"echo X | sudo -S ls; echo X | docker login --password-stdin; echo X | tee f", "echo *** | sudo -S ls; echo *** | docker login --password-stdin; echo X | tee f"},
		{"printf '%s' \"X\" | docker login --password-stdin\necho $X | kinit", "printf '%s' \"***\" | docker login --password-stdin\necho $X | kinit"},
		{"t.py: error: argument --hub_token: invalid int value: 'x'", "t.py: error: argument --hub_token: invalid int value: '***'"},
		{"error: argument --token: expected one argument", "error: argument --token: expected one argument"},
		{"usage: t.py [-h] [--hub_token HUB_TOKEN] [--api-key KEY]", "usage: t.py [-h] [--hub_token HUB_TOKEN] [--api-key KEY]"},
		{"Error: Option '--token' requires an argument.", "Error: Option '--token' requires an argument."},
		{"error: the option --token is required", "error: the option --token is required"},
		{"line 3: HF_TOKEN: unbound variable", "line 3: HF_TOKEN: unbound variable"},
		{"hub_token=None, hub_token=<HUB_TOKEN>, use_auth_token=True, f(token=token)", "hub_token=None, hub_token=<HUB_TOKEN>, use_auth_token=True, f(token=token)"},
		{`token=os.environ["HF_TOKEN"]`, `token=os.environ["HF_TOKEN"]`},
		{"export K_TOKEN=$(cat ~/f) T_TOKEN=\"$(cat f)\" A_TOKEN=`cat f` B_TOKEN=$B C_TOKEN=\"${C}\"", "export K_TOKEN=$(cat ~/f) T_TOKEN=\"$(cat f)\" A_TOKEN=`cat f` B_TOKEN=$B C_TOKEN=\"${C}\""},
		{"A_TOKEN=${A_TOKEN:-abc} B_TOKEN=${B:-abc} ${C_TOKEN:+set} ${D_TOKEN:?is not set}", "A_TOKEN=${A_TOKEN:-***} B_TOKEN=${B:-***} ${C_TOKEN:+set} ${D_TOKEN:?is not set}"},
		{`C={\"token\": \"abc\", \"x\": 1}`, `C={\"token\": \"***\", \"x\": 1}`},
		{`{"pass": "abc", "pw": "x", "tokens": {"a": 1}, "secret.yaml": 3}`, `{"pass": "***", "pw": "***", "tokens": {"a": 1}, "secret.yaml": 3}`},
		{"hub:\n  token: hunter2\n", "hub:\n  token: ***\n"},
		{"-----BEGIN OPENSSH PRIVATE KEY-----\\nabc\\n-----END OPENSSH PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----\\n***-----END OPENSSH PRIVATE KEY-----"},
		{"SSHPASS=X dbpass=Y compass=Z; echo -n bob:X | base64 -w0", "SSHPASS=*** dbpass=*** compass=Z; echo -n *** | base64 -w0"},
		{"a basic configuration_file; launcher=basic trainer.devices=4; Basic dXNlcjpwYXNzd29yZA==", "a basic configuration_file; launcher=basic trainer.devices=4; Basic ***"},
		{"-----BEGIN CERTIFICATE-----\nabc", "-----BEGIN CERTIFICATE-----\nabc"},
		{"machine h\n  login u\n  password X\nthe password is wrong", "machine h\n  login u\n  password ***\nthe password is wrong"},
		{`{"auths": {"https://h/v1/": {"auth": "dXNlcjpwYXNz"}}}`, `{"auths": {"https://h/v1/": {"auth": "***"}}}`},
		{"https://hooks.slack.com/services/T0/B0/abc", "https://hooks.slack.com/services/***"},
		{"https_proxy=bob:X@proxy:3128 http_proxy=proxy:3128", "https_proxy=***@proxy:3128 http_proxy=proxy:3128"},
		{"https://h/x?sv=1&sig=abc caught sig=11", "https://h/x?sv=1&sig=*** caught sig=11"},
		{"call wandb.login(key=[your_api_key]); API key: 0123456789abcdefg", "call wandb.login(key=[your_api_key]); API key: ***"},
		{"in hf_hub_download_with_retry at /x/sk-learn-contrib-extensions/a.py", "in hf_hub_download_with_retry at /x/sk-learn-contrib-extensions/a.py"},
		{"srun: error: g_slurm_auth_verify: REQUEST_X has authentication error", "srun: error: g_slurm_auth_verify: REQUEST_X has authentication error"},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("Text(%q)\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"SLURM_JWT", "abc", "***"},
		{"MLFLOW_TRACKING_PASSWORD", "abc", "***"},
		{"AWS_SECRET_ACCESS_KEY", "abc", "***"},
		{"WANDB_API_KEY", "", ""},
		{"SSH_AUTH_SOCK", "/tmp/x", "/tmp/x"},
		{"PATH", "/usr/bin:/bin", "/usr/bin:/bin"},
		{"PWD", "/home/x", "/home/x"},
		{"PASS", "abc", "***"},
		{"GITHUB_PAT", "abc", "***"},
		{"FILE_PAT", "*.py", "*.py"},
		{"BIND_PW", "abc", "***"},
		{"PIP_INDEX_URL", "https://u:p@h/simple", "https://***@h/simple"},
		{"NCCL_SOCKET_IFNAME", "^lo,docker", "^lo,docker"},
		{"NCCL_DEBUG", "INFO", "INFO"},
		{"CUDA_VISIBLE_DEVICES", "0,1", "0,1"},
	} {
		if got := Value(c.name, c.in); got != c.want {
			t.Errorf("Value(%s, %q) = %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"a://b:c@d", "token=x", "--password y", "Bearer abcdefghijklmnop", "\"secret\":\"\\\"x", "x@y", "mysql -p'x", "curl -u a:", "wandb login 01234567890123456789a", "-----BEGIN PRIVATE KEY-----\nx", "echo -n x|sudo -S", "A_TOKEN=${A:-x", "machine h login u password x", "--token: invalid value: 'x", "x_proxy=a:b@c", "\\\"token\\\":\\\"x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if again := Text(got); again != got {
			t.Errorf("not stable: %q -> %q -> %q", s, got, again)
		}
		if got := Text("u https://me:hunter2hunter2@h/ " + s); strings.Contains(got, "hunter2hunter2@") {
			t.Errorf("secret shown: %q", got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	s := strings.Repeat("[rank3]: /opt/x/lib/python3.11/site-packages/torch/x.py:12 NCCL WARN timeout=5 foo\n", 1000)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Text(s)
	}
}

func TestSecrets(t *testing.T) {
	got := Secrets("export HF_TOKEN=abc123 && git clone https://me:pw@h/x; python t.py --token ***")
	if len(got) != 2 || got[0] != "abc123" || got[1] != "me:pw" {
		t.Errorf("%q", got)
	}
}
