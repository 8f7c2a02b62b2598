package mask

import "testing"

// The quick look that nearly every word ends at must let through every name
// that can be a secret's.
func TestMayBeSecret(t *testing.T) {
	names := []string{"DB_PASS", "PGPASSWORD", "xpassword", "MY_PASSWORD"}
	names = append(names, secretParts...)
	for _, k := range secretKeys {
		names = append(names, k+"_KEY")
	}
	for _, n := range names {
		for _, form := range []string{n, "X_" + n, n + "_X", "x-" + n} {
			if SecretName(form) && !mayBeSecret(form) {
				t.Errorf("%s", form)
			}
		}
		if !mayBeSecret(n) {
			t.Errorf("%s", n)
		}
	}
	for _, n := range []string{"", "ab", "CUDA_VISIBLE_DEVICES", "torchrun", "--nproc_per_node"} {
		if mayBeSecret(n) {
			t.Errorf("%s is looked at closely", n)
		}
	}
}

func TestSecretOfUser(t *testing.T) {
	for n, want := range map[string]bool{"USER_PASSWORD": true, "--user-password": true, "DB_USER_PASSWD": true, "TOKEN_USER": false, "AUTH_USER": false,
		"PASSWORD_FILE": false, "--redis-pass": true, "--pass": true, "forward_pass": false, "USER": false} {
		if got := SecretName(n); got != want {
			t.Errorf("%s: %v", n, got)
		}
	}
}
