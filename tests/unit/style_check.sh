#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Rules about the sources that a compiler does not enforce. Each rule first
# has to find what is wrong in a planted tree, then nothing in the real one.
#   volatile   qualifies nothing in lib/ and include/: shared data is C11
#              atomic (an asm statement may be volatile)
#   counter    hce_counter_t's value is read and written by the functions of
#              util/counter.h, or within an atomic_...() call
#   getenv     is called in lib/util only
#   vendor     headers are included in their home only
#   header     every header compiles alone, in C and in C++: it takes
#              static_assert from assert.h, alignas from stdalign.h, and
#              writes _Atomic(type)
#
# A finding is a line "RULE FILE:LINE what".
# environment: srcdir, builddir, CC, CXX, CFLAGS, TMPDIR (see tests/local.mk)
set -u
export LC_ALL=C
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
builddir=${builddir:-$PWD}
CC=${CC:-cc}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/hce-style.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT

# gcc -> g++, aarch64-linux-gnu-gcc-12 -> aarch64-linux-gnu-g++-12, ... if it
# knows stdatomic.h, as C++23 does.
cxx_find() {
    local cxx=${CC/%clang/clang++}

    cxx=${cxx/clang-/clang++-}
    cxx=${cxx/gcc/g++}
    [ "$cxx" != "$CC" ] || cxx=${CC/%cc/c++}
    cxx=${CXX:-$cxx}
    printf '#include <stdatomic.h>\n_Atomic(int) number;\n' |
        $cxx -std=c++2b -x c++ -fsyntax-only - 2>/dev/null && echo "$cxx"
}
CXX=$(cxx_find)

packages_cflags=$(sed -n 's/^[A-Z]*_CFLAGS = //p' "$builddir/Makefile" |
    grep -oE -- '-(isystem |[ID])[^ ]+' | sort -u | tr '\n' ' ')

# The file without comments, the text of literals and the volatile of asm
# statements, line by line.
strip() {
    awk '
    {
        out = ""
        while ($0 != "") {
            if (comment) {
                end = index($0, "*/")
                if (!end) { $0 = ""; break }
                $0 = substr($0, end + 2); comment = 0; out = out " "
            } else if (match($0, /\/\*|\/\/|"|\047/)) {
                token = substr($0, RSTART, RLENGTH)
                out = out substr($0, 1, RSTART - 1)
                $0 = substr($0, RSTART + RLENGTH)
                if (token == "/*") { comment = 1 }
                else if (token == "//") { $0 = "" }
                else {
                    body = token == "\"" ? "^([^\"\\\\]|\\\\.)*\"" \
                                         : "^([^\047\\\\]|\\\\.)*\047"
                    if (match($0, body)) { $0 = substr($0, RLENGTH + 1) }
                    out = out token token
                }
            } else { out = out $0; $0 = "" }
        }
        gsub(/(__asm__|asm)[ \t]+volatile/, "asm", out)
        print out
    }' "$1"
}

# sources ROOT FOLDER...: C files below those folders, relative to ROOT.
sources() {
    (cd "$1" && shift &&
        find "$@" -name '*.[ch]' -type f 2>/dev/null | sort)
}

# Strips the sources below ROOT into $tmp/code, in which grep_code looks.
code_make() {
    local file

    rm -rf "$tmp/code"
    for file in $(sources "$1" lib include perf tools); do
        mkdir -p "$tmp/code/${file%/*}"
        strip "$1/$file" >"$tmp/code/$file"
    done
}

# grep_code RULE WHAT PATTERN HOME FOLDER...: findings outside of HOME, a
# regular expression over file names.
grep_code() {
    local rule=$1 what=$2 pattern=$3 home=$4 file line

    shift 4
    while IFS=: read -r file line _; do
        [[ $file =~ ^($home) ]] || echo "$rule $file:$line $what"
    done < <(cd "$tmp/code" && grep -rnE "$pattern" "$@" 2>/dev/null)
}

check_volatile() {
    grep_code volatile volatile '\<volatile\>' none lib include
}

check_getenv() {
    grep_code getenv getenv '\<(secure_)?getenv\>' lib/util/ \
        lib include perf tools
}

include='^[ \t]*#[ \t]*include[ \t]*<'

# vendor PATTERN HOME
vendor() {
    grep_code vendor "$1" "$include$1" "$2" lib include perf tools
}

check_vendor() {
    local files

    vendor 'cuda\.h' 'lib/drv/'
    vendor 'uc[pstm]/' 'lib/rma_proxy/ucx/'
    vendor '(infiniband|rdma)/' 'lib/rma_proxy/verbs/'
    vendor 'pmix' 'lib/boot/'
    vendor 'hwloc' 'lib/topo/'
    vendor 'mpi\.h' 'lib/front/mpi/|perf/'
    vendor 'nccl\.h' 'lib/front/nccl/|perf/'
    files=$(cd "$tmp/code" && grep -rlE "${include}pmix" lib | sort)
    [ "$(wc -w <<<"$files")" -le 1 ] ||
        echo "vendor" $files "more than one file includes pmix"
}

# Of a package that this build is without.
is_left_out() {
    local package

    for package in UCX:uc[pst]/ VERBS:infiniband/ PMIX:pmix HWLOC:hwloc \
        JANSSON:jansson CUDA:cuda; do
        if grep -qE "$include${package#*:}" "$1" &&
            ! grep -q "define HCE_HAVE_${package%%:*} 1" \
                "$builddir/config.h"; then
            return 0
        fi
    done
    return 1
}

# compile LANGUAGE ROOT FILE: errors of FILE, by the sources below ROOT.
compile() {
    local command="$CC -std=gnu11 -x c"

    [ "$1" = c ] || command="$CXX -std=c++2b -x c++"
    $command -fsyntax-only -Wall -Wextra -Werror -Wno-unused-parameter \
        -I"$2/include" -I"$2/lib" -I"$builddir" $packages_cflags "$3" \
        2>&1 | grep -E '(error|warning):'
}

check_header() {
    local file language

    for file in $(sources "$1" lib include | grep '\.h$'); do
        if is_left_out "$1/$file"; then
            echo "not compiled, its package is missing: $file" >&2
            continue
        fi
        echo "#include \"$1/$file\"" >"$tmp/alone.c"
        for language in c ${CXX:+c++}; do
            compile $language "$1" "$tmp/alone.c" | head -n 1 |
                sed "s|^|header $file:1 alone in $language: |"
        done
    done
}

# Is what leads to FILE:LINE:COLUMN an argument of an atomic_...()?
in_atomic_call() {
    local IFS=: file line column

    read -r file line column _ <<<"$1"
    strip "$file" | head -n "$line" | tail -n 4 |
        awk -v column="$column" -v last="$((line < 4 ? line : 4))" '
            { text = text " " (NR == last ? substr($0, 1, column) : $0) }
            END { sub(/.*[;{}]/, "", text); exit text !~ /atomic_[a-z_]+\(/ }'
}

# By type, not by name: the member is given another name in a copy, and the
# compiler says who misses it.
check_counter() {
    local copy=$tmp/copy file errors error

    rm -rf "$copy"
    mkdir "$copy"
    cp -r "$1/lib" "$1/include" "$copy"
    sed -i 's/\<value\>/hidden_value/g' "$copy/lib/util/counter.h"
    for file in $(sources "$copy" lib | grep '\.c$'); do
        is_left_out "$copy/$file" && continue
        errors=$(compile c "$copy" "$copy/$file")
        while read -r error; do
            [ -n "$error" ] && ! in_atomic_call "$error" &&
                sed "s|^$copy/\([^:]*:[0-9]*\):.*|counter \1 ->value|" \
                    <<<"$error"
        done < <(grep 'no member named' <<<"$errors")
        [ -z "$errors" ] || grep -q 'no member named' <<<"$errors" ||
            echo "counter $file:1 cannot be checked: ${errors%%$'\n'*}"
    done | sort -u
}

check_all() {
    code_make "$1"
    check_volatile
    check_getenv
    check_vendor
    check_header "$1"
    check_counter "$1"
}

# plant FILE: makes a file of the planted tree from standard input.
plant() {
    mkdir -p "$(dirname "$tmp/bad/$1")"
    cat >"$tmp/bad/$1"
}

plant_tree() {
    mkdir -p "$tmp/bad/lib/util"
    cp -r "$srcdir/include" "$tmp/bad"
    cp "$srcdir/lib/util/counter.h" "$tmp/bad/lib/util"
    plant lib/ce/good.c <<'EOF'
/* volatile, getenv() in a comment; #include <cuda.h> */
#include "util/counter.h"
#include <stdlib.h>
struct other { int value; };
const char *good(hce_counter_t *c, struct other *o);
const char *good(hce_counter_t *c, struct other *o)
{
    o->value = '"';
    __asm__ __volatile__("" ::: "memory");
    __asm__ volatile("" ::: "memory");
    atomic_fetch_add_explicit(
        &c->value, (uint64_t)o->value,
        memory_order_release);
    return "volatile getenv(\"X\")";
}
EOF
    plant lib/ce/bad.c <<'EOF'
#include "util/counter.h"
#include <stdlib.h>
volatile int shared;
struct pair { hce_counter_t counter; };
char *bad(hce_counter_t *c, struct pair *p);
char *bad(hce_counter_t *c, struct pair *p)
{
    c->value = 1;
    atomic_load(&c->value);
    return p->counter.value != 0 ? getenv("X") : NULL;
}
EOF
    plant include/hce/bad.h <<'EOF'
static inline size_t bad_size(void)
{
    return 0;
}
EOF
    plant lib/ce/only_c.h <<'EOF'
#include <stdlib.h>
static inline int *only_c(void)
{
    return malloc(4);
}
EOF
    plant lib/boot/one.c <<<'#include <pmix.h>'
    plant lib/boot/two.c <<<'  #  include <pmix_common.h>'
    plant lib/core/vendor.h <<'EOF'
#include <stdint.h>
#if 0
#include <ucp/api/ucp.h>
#include <hwloc.h>
#endif
EOF
    plant perf/vendor.c <<'EOF'
#include <mpi.h>
#include <infiniband/verbs.h>
EOF
}

expected() {
    cat <<EOF
volatile lib/ce/bad.c:3 volatile
getenv lib/ce/bad.c:10 getenv
vendor lib/core/vendor.h:3 uc[pstm]/
vendor lib/core/vendor.h:4 hwloc
vendor perf/vendor.c:2 (infiniband|rdma)/
vendor lib/boot/one.c lib/boot/two.c more than one file includes pmix
header include/hce/bad.h:1 alone in c
${CXX:+header include/hce/bad.h:1 alone in c++}
${CXX:+header lib/ce/only_c.h:1 alone in c++}
counter lib/ce/bad.c:8 ->value
counter lib/ce/bad.c:10 ->value
EOF
}

plant_tree
check_all "$tmp/bad" 2>/dev/null |
    sed 's/\(alone in [^:]*\):.*/\1/; /cannot be checked/d' | sort >"$tmp/found"
expected | grep . | sort >"$tmp/expected"
if ! diff "$tmp/expected" "$tmp/found"; then
    echo "The planted tree: < was not found, > should not have been"
    exit 1
fi
echo "all $(wc -l <"$tmp/found") planted faults were found"

check_all "$srcdir" >"$tmp/found"
if [ -s "$tmp/found" ]; then
    cat "$tmp/found"
    exit 1
fi
if [ -z "$CXX" ]; then
    echo "skipped: no C++23 compiler for the headers; all other rules hold"
    exit 77
fi
echo "nothing to find in $(sources "$srcdir" lib include | wc -l) files"
