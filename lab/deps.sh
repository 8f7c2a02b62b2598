#!/bin/sh
# Brings what the tests need onto this machine; a second run finds everything
# there and takes a moment.
#
#   lab/deps.sh [packages] [nvidia] [wheels] [tools] [poetry] [envmodules]    all of them when none is named
#
# packages  Debian packages: installed by root, otherwise named with an exit status of 1
# nvidia    NVIDIA's user-space driver files, from the non-free area of the Debian
#           release that this machine already uses, unpacked into the cache, not installed
# wheels    real torch wheels from the package index, unpacked into the cache
# tools     uv from the package index, in an environment of its own in the cache
# poetry    poetry from the package index, the same way
# envmodules  Environment Modules, which cannot be installed beside lmod: Debian's package
#           unpacked into the cache
# morewheels  only when it is named: the wheels of lab/wheels.txt, for make test-wheels
#
# The cache is $NCCLINIC_CACHE, else /var/cache/ncclinic-test for root, else
# ${XDG_CACHE_HOME:-~/.cache}/ncclinic-test. It takes about 9 GB.
set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)

packages="slurm-wlm slurmctld slurmd slurm-client munge slurmdbd mariadb-server-core
	python3 python3-pip python3-venv python3-torch
	lmod squashfs-tools charliecloud-runtime ripgrep shellcheck strace iproute2 nftables
	xz-utils zstd lz4 unzip binutils patch procps util-linux ca-certificates git make"

if [ -n "${NCCLINIC_CACHE:-}" ]; then
	cache=$NCCLINIC_CACHE
elif [ "$(id -u)" = 0 ]; then
	cache=/var/cache/ncclinic-test
else
	cache=${XDG_CACHE_HOME:-$HOME/.cache}/ncclinic-test
fi

say() { printf 'deps: %s\n' "$*" >&2; }
die() {
	say "$*"
	exit 1
}

# retry COMMAND…: mirrors have bad minutes.
retry() {
	n=1
	until "$@"; do
		[ $n -ge 4 ] && return 1
		say "$1 failed, trying again in $((n * 5)) s"
		sleep $((n * 5))
		n=$((n + 1))
	done
}

# absent prints the packages that are not installed.
absent() {
	have=" $(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' 2>/dev/null | sed -n 's/^ii *//p' | tr '\n' ' ')"
	for p in $packages; do
		case $have in
		*" $p "*) ;;
		*) printf '%s ' "$p" ;;
		esac
	done
}

install_packages() {
	command -v dpkg-query >/dev/null || die "this is no Debian: install by hand: $packages"
	missing=$(absent)
	[ -z "$missing" ] && return
	if [ "$(id -u)" != 0 ]; then
		die "missing; as root: apt-get install $missing"
	fi
	say "installing $missing"
	# Nothing that is installed here may start a service of its own.
	policy=/usr/sbin/policy-rc.d
	ours=
	if [ ! -e $policy ]; then
		ours=$policy
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod 755 $policy
	fi
	log=$(mktemp)
	export DEBIAN_FRONTEND=noninteractive
	ok=0
	# shellcheck disable=SC2086 # one word per package
	retry apt-get -qq update >"$log" 2>&1 && retry apt-get -qq install --no-install-recommends $missing >>"$log" 2>&1 && ok=1
	[ -n "$ours" ] && rm -f "$ours"
	if [ $ok = 0 ]; then
		tail -n 40 "$log" >&2
		die "apt-get failed; its log is $log"
	fi
	rm -f "$log"
}

# is_done NAME TEXT: whether NAME was finished for exactly this input.
is_done() { [ "$(cat "$cache/$1.done" 2>/dev/null)" = "$2" ]; }

install_nvidia() {
	# shellcheck source=/dev/null
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	[ -n "$release" ] || die "no VERSION_CODENAME in /etc/os-release"
	[ "$(dpkg --print-architecture)" = amd64 ] || {
		say "NVIDIA's files are only fetched on amd64"
		return
	}
	is_done nvidia "$release" && [ -d "$cache/nvidia" ] && return
	say "fetching NVIDIA's user-space driver files"
	apt=$cache/apt
	rm -rf "$apt" "$cache/nvidia"
	mkdir -p "$apt/parts" "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/debs" "$cache/nvidia"
	: >"$apt/status"
	# The machine's own Debian entries, with the other areas of the archive.
	cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
		awk -v r="$release" '
			$1 == "deb" {
				i = 2
				if ($i ~ /^\[/) {while ($i !~ /\]$/ && i < NF) i++; i++}
				if ($(i + 1) !~ "^" r "(-updates|-security)?$" || $0 !~ / main( |$)/) next
				line = ""
				for (j = 1; j <= i + 1; j++) line = line $j " "
				print line "contrib non-free"
			}' >"$apt/parts/own.list"
	for f in /etc/apt/sources.list.d/*.sources; do
		[ -f "$f" ] || continue
		awk -v r="$release" '
			BEGIN {RS = ""; ORS = "\n\n"; FS = "\n"}
			{
				suite = main = deb = 0
				for (i = 1; i <= NF; i++) {
					if ($i ~ /^Suites:/) {n = split($i, w, " "); for (j = 2; j <= n; j++) if (w[j] ~ "^" r "(-updates|-security)?$") suite = 1}
					if ($i ~ /^Types:.*deb/) deb = 1
					if ($i ~ /^Components:.*main/) {main = 1; $i = "Components: contrib non-free"}
				}
				if (suite && main && deb) {s = ""; for (i = 1; i <= NF; i++) if ($i !~ /^#/) s = s (s == "" ? "" : "\n") $i; print s}
			}' "$f" >"$apt/parts/$(basename "$f")"
	done
	apt_get() {
		apt-get -qq -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" \
			-o Dir::Cache="$apt/cache" -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt/parts" \
			-o APT::Sandbox::User="$(id -un)" -o APT::Get::List-Cleanup=false -o DPkg::Post-Invoke= "$@"
	}
	private_update() { apt_get update >"$apt/log" 2>&1; }
	private_download() { (cd "$apt/debs" && apt_get download libcuda1 libnvidia-ml1 nvidia-smi >>"$apt/log" 2>&1); }
	{ retry private_update && retry private_download; } || {
		cat "$apt/log" >&2
		die "NVIDIA's files could not be fetched"
	}
	for d in "$apt"/debs/*.deb; do
		dpkg-deb -x "$d" "$cache/nvidia"
	done
	rm -rf "$apt"
	echo "$release" >"$cache/nvidia.done"
}

# pip of Debian's own Python, whatever else comes first on PATH.
pip() { PIP_ROOT_USER_ACTION=ignore /usr/bin/python3 -m pip -q --disable-pip-version-check --no-cache-dir "$@"; }

# fetch REQUIREMENTS PLATFORM…: pip checks each file against its hash.
fetch() {
	req=$1
	shift
	platforms=
	for p in "$@"; do platforms="$platforms --platform $p"; done
	# shellcheck disable=SC2086
	retry pip download --progress-bar off --no-deps --only-binary=:all: --require-hashes \
		--implementation cp --python-version 3.11 $platforms -d "$cache/wheels" -r "$here/$req" ||
		die "the wheels of $req could not be fetched"
}

# links NAME PATTERNS: a virtual environment with the packages of "cuda" except
# those that grep finds; hard links, so no second copy.
links() {
	site=lib/python3.11/site-packages
	rm -rf "${cache:?}/$1"
	/usr/bin/python3 -m venv --without-pip "$cache/$1"
	for d in "$cache/cuda/$site"/*; do
		# shellcheck disable=SC2086 # several options
		printf '%s\n' "${d##*/}" | grep -q $2 || cp -al "$d" "$cache/$1/$site/"
	done
	for s in "$cache"/cuda/bin/torch*; do
		sed "1s|$cache/cuda/|$cache/$1/|" "$s" >"$cache/$1/bin/${s##*/}"
		chmod 755 "$cache/$1/bin/${s##*/}"
	done
}

install_wheels() {
	v=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') || die "no /usr/bin/python3"
	[ "$v" = 3.11 ] || die "the wheels are for Python 3.11, /usr/bin/python3 is $v"
	mkdir -p "$cache/wheels"
	x86="manylinux1_x86_64 manylinux2014_x86_64 manylinux_2_17_x86_64 manylinux_2_28_x86_64"
	arm="manylinux2014_aarch64 manylinux_2_17_aarch64 manylinux_2_28_aarch64"

	# The number changes when this script unpacks in another way.
	sum="1 $(sha256sum <"$here/requirements-aarch64.txt")"
	if ! is_done aarch64 "$sum"; then
		say "fetching the aarch64 CPU build of torch"
		# shellcheck disable=SC2086
		fetch requirements-aarch64.txt $arm
		rm -rf "$cache/aarch64"
		/usr/bin/python3 -m venv --without-pip "$cache/aarch64"
		platforms=
		for p in $arm; do platforms="$platforms --platform $p"; done
		# shellcheck disable=SC2086
		pip install --no-index --no-deps --no-compile --only-binary=:all: --implementation cp --python-version 3.11 $platforms \
			--find-links "$cache/wheels" --target "$cache/aarch64/lib/python3.11/site-packages" -r "$here/requirements-aarch64.txt"
		mv "$cache/aarch64"/lib/python3.11/site-packages/bin/* "$cache/aarch64/bin/"
		rmdir "$cache/aarch64/lib/python3.11/site-packages/bin"
		echo "$sum" >"$cache/aarch64.done"
	fi

	[ "$(uname -m)" = x86_64 ] || {
		say "the CUDA build is only fetched on x86_64"
		return
	}
	sum="1 $(sha256sum <"$here/requirements-cuda.txt")"
	if ! is_done cuda "$sum"; then
		say "fetching the CUDA build of torch (3 GB, once)"
		# shellcheck disable=SC2086
		fetch requirements-cuda.txt $x86
		say "unpacking it"
		rm -rf "$cache/cuda" "$cache/cuda-bare"
		# A right installation: a virtual environment as pip makes it.
		/usr/bin/python3 -m venv --without-pip "$cache/cuda"
		pip --python "$cache/cuda/bin/python" install --no-index --no-deps --no-compile \
			--find-links "$cache/wheels" -r "$here/requirements-cuda.txt"
		# The same as --no-deps leaves it, without NVIDIA's libraries, and one without NCCL alone.
		links cuda-bare '-e ^nvidia -e ^triton'
		links cuda-no-nccl '-e ^nvidia_nccl'
		rm -rf "$cache/cuda-no-nccl/lib/python3.11/site-packages/nvidia/nccl"
		echo "$sum" >"$cache/cuda.done"
	fi
}

install_tools() {
	[ "$(uname -m)" = x86_64 ] || {
		say "uv is only fetched on x86_64"
		return
	}
	sum="1 $(sha256sum <"$here/requirements-tools.txt")"
	is_done tools "$sum" && return
	say "fetching uv"
	rm -rf "$cache/tools"
	/usr/bin/python3 -m venv --without-pip "$cache/tools"
	retry pip --python "$cache/tools/bin/python" install --no-deps --only-binary=:all: --require-hashes \
		-r "$here/requirements-tools.txt" || die "uv could not be fetched"
	echo "$sum" >"$cache/tools.done"
}

install_poetry() {
	[ "$(uname -m)" = x86_64 ] || {
		say "poetry is only fetched on x86_64"
		return
	}
	sum="1 $(sha256sum <"$here/requirements-poetry.txt")"
	is_done poetry "$sum" && return
	say "fetching poetry"
	rm -rf "$cache/poetry"
	/usr/bin/python3 -m venv --without-pip "$cache/poetry"
	retry pip --python "$cache/poetry/bin/python" install --no-deps --only-binary=:all: --require-hashes \
		-r "$here/requirements-poetry.txt" || die "poetry could not be fetched"
	echo "$sum" >"$cache/poetry.done"
}

install_envmodules() {
	is_done envmodules 1 && return
	say "fetching environment-modules"
	rm -rf "$cache/envmodules" "$cache/envmodules.deb"
	mkdir -p "$cache/envmodules" "$cache/envmodules.deb"
	download() { (cd "$cache/envmodules.deb" && apt-get -qq -o APT::Sandbox::User="$(id -un)" download environment-modules); }
	retry download || die "environment-modules could not be fetched"
	dpkg-deb -x "$cache"/envmodules.deb/*.deb "$cache/envmodules"
	rm -rf "$cache/envmodules.deb"
	echo 1 >"$cache/envmodules.done"
}

install_morewheels() {
	sum="1 $(sha256sum <"$here/wheels.txt")"
	is_done more-wheels "$sum" && return
	say "fetching torch wheels of many releases and platforms (6 GB, once)"
	mkdir -p "$cache/more-wheels"
	sed '/^#/d' "$here/wheels.txt" | while read -r py platform req; do
		version=${req#torch==}
		file=$(find "$cache/more-wheels" -name "torch-${version%% *}-*-$platform.whl")
		# What is there already is only checked against its hash.
		if [ -n "$file" ] && echo "${req##*:}  $file" | sha256sum -c --status; then
			continue
		fi
		echo "$req" >"$cache/more-wheels/requirement"
		retry pip download --progress-bar off --no-deps --only-binary=:all: --require-hashes --implementation cp \
			--python-version "$py" --platform "$platform" -d "$cache/more-wheels" -r "$cache/more-wheels/requirement" </dev/null ||
			die "torch for $platform could not be fetched"
	done
	rm -f "$cache/more-wheels/requirement"
	echo "$sum" >"$cache/more-wheels.done"
}

mkdir -p "$cache"
# One at a time: two would unpack over each other.
if command -v flock >/dev/null && [ -z "${NCCLINIC_DEPS_LOCKED:-}" ]; then
	NCCLINIC_DEPS_LOCKED=1 exec flock "$cache/lock" "$0" "$@"
fi
[ $# = 0 ] && set -- packages nvidia wheels tools poetry envmodules
for part in "$@"; do
	case $part in
	packages) install_packages ;;
	nvidia) install_nvidia ;;
	wheels) install_wheels ;;
	tools) install_tools ;;
	poetry) install_poetry ;;
	envmodules) install_envmodules ;;
	morewheels) install_morewheels ;;
	cache) echo "$cache" ;;
	*) die "unknown part $part: packages, nvidia, wheels, tools, poetry, envmodules or morewheels" ;;
	esac
done
