# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Makes the manual's section 3 from include/hce/hce.h, a page a call: the
# comment before an HCE_PUBLIC prototype is its text, and the types that the
# prototype names are shown as the header defines them.
#
# usage: awk -v dir=DIR -v version=VERSION -f man3.awk hce.h

# For roff: backslashes, a control character first in a line, @a and dashes.
function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    sub(/^[.']/, "\\\\\\&&", text)
    while (match(text, /@a [A-Za-z_]+/))
        text = substr(text, 1, RSTART - 1) "\\fI" \
            substr(text, RSTART + 3, RLENGTH - 3) "\\fR" \
            substr(text, RSTART + RLENGTH)
    return text
}

function verbatim(text) {
    print ".PP\n.in +4n\n.nf\n" roff(text) ".fi\n.in" > page
}

# Shows each definition whose name the parameters contain.
function show_types(    i, parameters) {
    parameters = prototype
    sub(/^[^(]*/, "", parameters)
    for (i = 1; i <= num_types; i++)
        if (parameters ~ ("[^a-z_]" type_name[i] "[^a-z_]")) {
            if (!shown++)
                print ".SH TYPES" > page
            verbatim(type_text[i])
        }
}

function section(title) {
    if (title != in_section)
        print ".SH " title > page
    in_section = title
}

# One line of a comment, already without its leading " * ".
function describe(line,    word) {
    if (line ~ /^@code/) {
        section("EXAMPLE")
        print ".nf" > page
        in_code = 1
    } else if (line ~ /^@endcode/) {
        print ".fi" > page
        in_code = 0
    } else if (in_code) {
        print roff(line) > page
    } else if (line ~ /^@param/) {
        section("PARAMETERS")
        split(line, word, " +")
        sub(/^@param +[a-z_]+ */, "", line)
        print ".TP\n.I " word[2] "\n" roff(line) > page
    } else if (line ~ /^@return/) {
        section("RETURN VALUE")
        sub(/^@return */, "", line)
        print roff(line) > page
    } else {
        sub(/^ +/, "", line)
        print line == "" ? ".PP" : roff(line) > page
    }
}

function write_page(    name, i, n, line, brief) {
    name = prototype
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    page = dir "/" name ".3"
    in_section = ""
    shown = in_code = 0

    n = split(comment, line, "\n")
    brief = line[1]
    sub(/[.:?]( .*)?$/, "", brief)
    print ".\\\" Made from include/hce/hce.h by man/man3.awk" > page
    print ".TH " name " 3 \"\" \"libhce " version "\" \"libhce\"" > page
    print ".SH NAME\n" name " \\- " roff(brief) > page
    print ".SH SYNOPSIS\n.nf\n#include <hce/hce.h>\n" > page
    print roff(prototype) "\n.fi" > page
    section("DESCRIPTION")
    for (i = 1; i <= n; i++)
        describe(line[i])
    show_types()
    print ".SH SEE ALSO\n.BR hce (7)" > page
    close(page)
}

/^\/\*\*/ { comment = ""; in_comment = 1 }

in_comment {
    line = $0
    sub(/^\/?\*\*? ?/, "", line)
    sub(/^ \*\/$/, "", line)
    sub(/^ \* ?/, "", line)
    ends = sub(/ *\*\/$/, "", line) || $0 ~ /\*\/$/
    if (!ends || line != "")
        comment = comment (comment == "" ? "" : "\n") line
    if (ends)
        in_comment = 0
    next
}

/^(typedef struct|typedef enum|enum) [a-z_ ]*\{/ { in_type = 1 }

# An enum without a name holds the bits of the struct after it.
in_type {
    line = $0
    sub(/\/\*\*</, "/*", line)
    type = type line "\n"
    if ($0 ~ /^}/) {
        in_type = 0
        name = $0
        gsub(/[} ;]/, "", name)
        if (name != "") {
            type_name[++num_types] = name
            type_text[num_types] = type
            type = ""
        }
    }
    next
}

/^HCE_PUBLIC/ { prototype = ""; in_prototype = 1 }

in_prototype {
    line = $0
    sub(/^HCE_PUBLIC /, "", line)
    if (prototype != "")
        sub(/^ +/, "    ", line)
    prototype = prototype (prototype == "" ? "" : "\n") line
    if ($0 ~ /;$/) {
        in_prototype = 0
        # Types may follow the prototype that names them: pages come last.
        pages++
        page_prototype[pages] = prototype
        page_comment[pages] = comment
    }
}

END {
    for (p = 1; p <= pages; p++) {
        prototype = page_prototype[p]
        comment = page_comment[p]
        write_page()
    }
}
