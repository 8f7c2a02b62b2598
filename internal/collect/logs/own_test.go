package logs

import "testing"

func TestOwnText(t *testing.T) {
	for s, want := range map[string]bool{
		"wrote model-00001.safetensors":            true,
		"Saving checkpoint":                        true,
		"tokenizing split train":                   true,
		"正在预处理数据":                                  true,
		"step 3 loss 2.1 tokens/s 1000":            false,
		"unsaved changes":                          false,
		"checkpoint_save failed":                   true,
		"epoch 1 accuracy 0.9":                     false,
		"":                                         false,
		"等待其他 rank":                                false,
		"x86_64 is the machine, 3write is no word": false,
	} {
		if got := ownText(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
