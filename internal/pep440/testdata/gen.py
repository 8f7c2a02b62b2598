"""Writes versions.tsv and specifiers.tsv from pypa/packaging, the reference.

Run: python3 gen.py (needs the packaging module). The first line of each table
names the version that wrote it.
"""
import itertools
import packaging
from packaging.version import Version, InvalidVersion
from packaging.specifiers import SpecifierSet, InvalidSpecifier

VERSIONS = """
1.0 1.0.0 v1.0 1 0 01.02.3 1.0.dev1 1.0.dev0 1.0a1 1.0.a.1 1.0-alpha_1 1.0a 1.0b2 1.0.beta2 1.0c1 1.0rc1 1.0-preview 1.0pre3
1.0.post1 1.0-1 1.0-r4 1.0rev 1.0.post 1.0.post1.dev3 1.0a1.post2 1.0a1.post2.dev4 1.0a1.dev2 1.0+local 1.0+1 1.0+01 1.0+1.2 1.0+abc.1
1.0+abc-1 1.0+ABC_1 1.0+ubuntu1 1!1.0 1!0.5 2!0 0!1.0 1.13.0a0 1.13.0 1.13.1+cu117 2.0.0 2.0.0+cu118 2.0.1 2.1.0a0+32f93b1 2.1.2
2.4.0 2.4.0+cpu 2.4.0+cu121 2.4.0.post1 2.4.0.post100 2.4.1 2.4.1rc2 2.4.10 2.5.0 2.5.0a0+872d972e41.nv24.08 2.5.0a0+b465a5843b.nv24.9
2.5.0a0+e000cf0ad9.nv24.10 2.5.1 2.5.1+cu124 2.6.0 2.6.0+cu124 2.6.0+cu126 2.6.0+rocm6.2.4 2.6.0a0+ecf3bae40a.nv25.1 2.6.0.dev20241112
2.6.0.dev20241112+cu121 2.7.0.dev20250101+cpu 2.7.0rc3 2.10.0 2.10 2.9.1 2.13.0+cpu 2.13.0+cu126 2.15.0 3 3.0.dev1 3.0a0
2024.8.1 20240801 123456789012345678901234567890.1 1.0.dev123456789012345678901234567890 12.4.127 12.8.90 2.21.5 2.18.1 8.9.2.26
9.1.0.70 2.0.0+cpu.cxx11.abi 2.0.0+cu118.with.pypi.cudnn 1.8.0+cu111 0.21.0+cu124
1.0.0.0.0 1.0.0.1 1..0 1.0. .1 1.0x 1.0+ 1.0+a..b abc 1.0-+a 1.0--1 1.0.post.dev 1.0dev 1.0_dev_3 1.0.DEV4 V2.0 1.0RC1 1.0.Post2
1.0a1b2 1!2!3 -1 +1 1.0a-1 1.0.a1.-2 1.0-dev 1-2 1-2-3 2.0.0a 2.0.0a0 1.0\u017f 1.0+\u212a \u0661.0 1,0 1.0*
""".encode().decode("unicode_escape").split()
VERSIONS += [" 1.0 ", "\t2.6.0+cu124\n", ""]

SPECS = """
==2.4.0 ==2.4.0.* ==2.4.* ==2.* ==2.4 !=2.4.0 !=2.4.* ==2.4.0+cu121 ==2.4.0+cpu !=2.4.0+cpu ===2.4.0 ===2.4.0+cu121 ===foo
>=2.4 >=2.4.0 <=2.4.0 <2.5 <2.5.0 >2.4 >2.4.0 >2.4.0.post1 <2.5.0a1 <=2.5.0a0 >=2.5.0a0 ==2.5.0a0 ==2.5.0a0+872d972e41.nv24.08 >2.5.0a0 ~=2.4 ~=2.4.0 ~=2.4.1rc1
~=2.4.0.post1 ~=1.0 ~=1!1.0 ==1!1.* ==1.0 ==1.0.0.0 ==1.0a1 ==1.0.post1 >1.0 <1.0 <1.0.post2 >1.0.post1 >=1.0.dev1 <1.0.dev1 >1.0a1
>=2.4,<2.6 >=2.0,!=2.5.*,<3 ==2.6.0 ==2.6.0.* >=2.6.0.dev1 <2.6 >2.6 >=3 <3 ==12.4.127 >=12.4,<13 ==9.1.0.70 ==1.13.* >=1.13 ~=1.13.0
==2.6.0+CU124 ==v2.6.0 >=v2.4 ==2.06.0 ==2.10.* ==2.1.* <2.6.0.dev20241112 !=1.0+local ==1.0.0+local ~=2 ~=2.* >=2.* >=2.4+cpu <2+a ~=2.4+cpu 2.4 =2.4 == ==2.4.a.*
==2.4a1.* ==2.4+cpu.* ==.* >= foo ===2.4;x >=2.4,<, , >=2.4,,<3 ==2.4.0.*.* ==2.*.0
""".split("\n")
SPECS = [s for line in SPECS for s in line.split(" ") if s] + ["", " >= 2.4 , < 3 ", "== 2.4.0", "=== 2.4.0", ">=2.4, <2.6"]


def enc(s):
    return s.encode("unicode_escape").decode()


good = []
with open("versions.tsv", "w") as f:
    f.write(f"# packaging {packaging.__version__}: text, normalised or INVALID, public, base, local, pre\n")
    for s in VERSIONS:
        try:
            v = Version(s)
        except InvalidVersion:
            f.write(f"{enc(s)}\tINVALID\n")
            continue
        good.append((s, v))
        f.write("\t".join([enc(s), str(v), v.public, v.base_version, v.local or "", str(int(v.is_prerelease))]) + "\n")
    f.write("# order: text of each valid version, lowest first; equal versions on one line\n")
    good.sort(key=lambda p: p[1])
    for _, grp in itertools.groupby(good, key=lambda p: p[1]):
        f.write("<\t" + "\t".join(enc(s) for s, _ in grp) + "\n")

with open("specifiers.tsv", "w") as f:
    f.write(f"# packaging {packaging.__version__}: specifier, INVALID or the bits of the valid versions in the order of versions.tsv\n")
    valid = [v for s in VERSIONS for v in [next((g for t, g in good if t == s), None)] if v is not None]
    for s in SPECS:
        try:
            ss = SpecifierSet(s)
        except InvalidSpecifier:
            f.write(f"{enc(s)}\tINVALID\n")
            continue
        f.write(f"{enc(s)}\t" + "".join("1" if ss.contains(v, prereleases=True) else "0" for v in valid) + "\n")
