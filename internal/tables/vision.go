package tables

import (
	"strconv"
	"strings"
)

// Companion returns the minor release of torchvision or torchaudio that belongs
// to a torch release ("0.21" for torchvision and torch 2.6.0), "" when not known.
// torchvision 0.15 came with torch 2.0 and each minor release since then moved
// both by one up to torch 2.13; torchaudio carries torch's own number from 2.0 to 2.8.
//
// Source: README of pytorch/vision, compatibility table, and pytorch/audio's
// installation page; read 2026-11-30.
func Companion(pkg, torch string) string {
	m := Minor(torch)
	rest, ok := strings.CutPrefix(m, "2.")
	if !ok {
		return ""
	}
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil:
		return ""
	case pkg == "torchvision" && n <= 13:
		return "0." + strconv.Itoa(15+n)
	case pkg == "torchaudio" && n <= 8:
		return m
	}
	return ""
}
