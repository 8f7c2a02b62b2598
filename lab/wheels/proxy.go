package wheels

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"html"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Server is a proxy that answers for every host itself: below /whl/TAG/ with the
// index of that build, below /simple/ with the index of packages.
type Server struct {
	CA  string // file with the certificate to trust
	URL string // of the proxy: http://127.0.0.1:PORT

	mu    sync.Mutex
	index map[string][]Wheel // "whl/cu124", "simple"
	asked []string
	ln    net.Listener
	ca    *x509.Certificate
	key   *ecdsa.PrivateKey
	certs map[string]*tls.Certificate
}

// Start serves until Close. dir takes the certificate.
func Start(dir string, index map[string][]Wheel) (*Server, error) {
	s := &Server{index: index, certs: map[string]*tls.Certificate{}, CA: filepath.Join(dir, "ca.pem")}
	var err error
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(48 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	raw, err := x509.CreateCertificate(rand.Reader, t, t, &s.key.PublicKey, s.key)
	if err != nil {
		return nil, err
	}
	if s.ca, err = x509.ParseCertificate(raw); err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o644); err != nil {
		return nil, err
	}
	if s.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.URL = "http://" + s.ln.Addr().String()
	go func() { _ = http.Serve(s.ln, http.HandlerFunc(s.connect)) }()
	return s, nil
}

// Close stops serving.
func (s *Server) Close() error { return s.ln.Close() }

// Env returns the variables that send pip and uv here and keep the machine's
// own settings away from them.
func (s *Server) Env() []string {
	return []string{"HTTPS_PROXY=" + s.URL, "https_proxy=" + s.URL, "NO_PROXY=", "no_proxy=",
		"SSL_CERT_FILE=" + s.CA, "REQUESTS_CA_BUNDLE=" + s.CA, "PIP_CERT=" + s.CA, "PIP_CONFIG_FILE=" + os.DevNull,
		"PIP_INDEX_URL=https://packages.invalid/simple", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1",
		"UV_INDEX_URL=https://packages.invalid/simple", "UV_NO_CONFIG=1", "UV_PYTHON_DOWNLOADS=never", "UV_LINK_MODE=copy"}
}

// Asked returns the paths that were asked for, and forgets them.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "https only", http.StatusBadRequest)
		return
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		http.Error(w, "host", http.StatusBadRequest)
		return
	}
	h, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	c, _, err := h.Hijack()
	if err != nil {
		return
	}
	if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")); err != nil {
		c.Close()
		return
	}
	cert, err := s.cert(host)
	if err != nil {
		c.Close()
		return
	}
	t := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12})
	defer t.Close()
	br := bufio.NewReader(t)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, host+req.URL.Path)
		s.mu.Unlock()
		body, kind, status := s.answer(req.URL.Path)
		head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\n\r\n", status, http.StatusText(status), kind, len(body))
		if req.Method == http.MethodHead {
			body = nil
		}
		if _, err := t.Write(append([]byte(head), body...)); err != nil {
			return
		}
	}
}

func (s *Server) cert(host string) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.certs[host]; c != nil {
		return c, nil
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(int64(len(s.certs) + 2)), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature}
	raw, err := x509.CreateCertificate(rand.Reader, t, s.ca, &s.key.PublicKey, s.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: s.key}
	s.certs[host] = c
	return c, nil
}

// answer serves an index page or a wheel.
func (s *Server) answer(path string) (body []byte, kind string, status int) {
	path = strings.Trim(path, "/")
	for prefix, ws := range s.index {
		rest, ok := strings.CutPrefix(path, prefix+"/")
		if !ok {
			continue
		}
		if name, err := url.PathUnescape(rest); err == nil && strings.HasSuffix(name, ".whl") {
			for i := range ws {
				if ws[i].File() == name {
					if b, err := ws[i].Bytes(); err == nil {
						return b, "application/octet-stream", http.StatusOK
					}
				}
			}
			break
		}
		if strings.Contains(rest, "/") {
			break
		}
		var b strings.Builder
		for i := range ws {
			if ws[i].Name == rest {
				fmt.Fprintf(&b, "<a href=\"/%s/%s\">%s</a>\n", prefix, strings.ReplaceAll(ws[i].File(), "+", "%2B"), html.EscapeString(ws[i].File()))
			}
		}
		if b.Len() > 0 {
			return []byte("<!DOCTYPE html><html><body>\n" + b.String() + "</body></html>\n"), "text/html", http.StatusOK
		}
	}
	return []byte("not found"), "text/plain", http.StatusNotFound
}

// Indexes makes the indexes of torch's releases: builds gives the CUDA tags of
// each release, pypi the tag of the wheel without a local tag on x86_64. Every
// index has what torch needs besides.
func Indexes(python string, builds map[string][]string, pypi map[string]string) map[string][]Wheel {
	cp := "cp" + strings.ReplaceAll(python, ".", "")
	tags := func(machine string) string { return cp + "-" + cp + "-linux_" + machine }
	common := []Wheel{Plain("filelock", "3.16.1"), Plain("nvidia-nccl-cu11", "2.21.5"), Plain("nvidia-nccl-cu12", "2.21.5"), Plain("nvidia-nccl-cu13", "2.30.7")}
	out := map[string][]Wheel{"simple": append([]Wheel{}, common...)}
	add := func(index string, w Wheel) {
		if out[index] == nil {
			out[index] = append([]Wheel{}, common...)
		}
		out[index] = append(out[index], w)
	}
	for v, ts := range builds {
		for _, m := range []string{"x86_64", "aarch64"} {
			add("whl/cpu", Torch(v, "cpu", true, tags(m)))
			for _, t := range ts {
				add("whl/"+t, Torch(v, t, true, tags(m)))
			}
		}
		add("simple", Torch(v, pypi[v], false, cp+"-"+cp+"-manylinux1_x86_64"))
		add("simple", Torch(v, "cpu", false, cp+"-"+cp+"-manylinux2014_aarch64"))
	}
	out["simple"] = append(out["simple"], Plain("trainer-lib", "1.0", "torch>=2.7"), Plain("helper-lib", "1.0", "torch"))
	return out
}
