# What `gcov -b -c` says of one file, for ci/coverage: "= lines reached branches taken", then "FILE FUNCTION: STATEMENT" of
# each statement with a branch that was never taken.
#
# A statement is named by the word that it begins with and by which of these it is in its function: "if 2" is the second
# if, "list_each 1" the first such loop. One that begins with no such word is a "choice", if ?:, && or || decides in it. So
# neither a new layout nor a new name in it makes it another.

function begin(word) {
    kind = word ~ /^(if|for|while|switch|return|list_each)$/ ? word : "choice"
    loops = kind !~ /^(return|choice)$/
    now = ++statements
    function_of[now] = where
    kind_of[now] = kind
    on_line = on_line " " now
}

# What has no number cannot have a branch.
function finish() {
    if (kind != "" && (kind != "choice" || decides[now]))
        number_of[now] = ++numbered[where, kind]
    kind = ""
}

function read_mark(mark) {
    if (mark ~ /^(&&|\|\||\?)$/)
        decides[now] = 1
    if (mark == "{" && (kind == "" || (!depth && !blocks))) {
        finish()
        blocks++
    } else if (mark == "}" && !depth) {
        finish()
        blocks--
    } else if (mark ~ /[({[]/) {
        if (kind == "")
            begin("")
        depth++
    } else if (mark ~ /[]})]/) {
        depth--
        if (!depth && loops)
            finish()
    } else if (mark == ";" && !depth) {
        finish()
    } else if (mark == ":" && kind == "case") {
        kind = ""
    } else if (kind == "" && mark != ";") {
        begin("")
    }
}

function read_word(word) {
    if (kind != "" || word ~ /^(else|do)$/)
        return
    if (word ~ /^(case|default)$/)
        kind = "case"
    else
        begin(word)
}

# Leaves in on_line which statements have a part of it.
function read_line(rest) {
    on_line = kind == "" || kind == "case" ? "" : now
    while (rest != "" && rest !~ /^#/) {
        if (in_comment) {
            if (!match(rest, /\*\//))
                return
            in_comment = 0
        } else if (match(rest, /^([ \t]+|"([^"\\]|\\.)*"|'([^'\\]|\\.)*')/)) {
        } else if (match(rest, /^\/\*/)) {
            in_comment = 1
        } else if (match(rest, /^[A-Za-z_0-9]+/)) {
            read_word(substr(rest, 1, RLENGTH))
        } else {
            match(rest, /^(&&|\|\||.)/)
            read_mark(substr(rest, 1, RLENGTH))
        }
        rest = substr(rest, RSTART + RLENGTH)
    }
}

# The first of them that can have a branch; when that is known, which is at the end.
function place_of(list,   ids, n, i) {
    n = split(list, ids, " ")
    for (i = 1; i < n && (kind_of[ids[i]] ~ /^(return|choice)$/ && !decides[ids[i]]); i++)
        ;
    return file " " function_of[ids[i]] ": " kind_of[ids[i]] " " number_of[ids[i]]
}

# A line is known as one before abort() only when that has been read.
function close_line() {
    if (text !~ /assert\(/ && !aborts) {
        branches += n
        taken += n - never
        if (never)
            places[++n_places] = on_line
    }
    n = never = 0
}

/^function / { next_where = $2; next }
/^(call|unconditional)/ { next }
/^branch/ { n++; never += /never executed|taken 0/; next }
{
    split($0, f, ":")
    gsub(/ /, "", f[1])
    sub(/^ *[^:]*:[^:]*:[ \t]*/, "", $0)
    aborts = $0 ~ /^abort\(\);/
    close_line()
    aborts = 0
    text = $0
    if (next_where != "")
        where = next_where
    next_where = ""
    read_line(text)
    if (f[1] ~ /^([0-9]+\*?|#####|=====)$/ && f[2] + 0 && text !~ /^abort\(\);/) {
        lines++
        reached += f[1] !~ /[#=]/
    }
}
END {
    close_line()
    print "=", lines + 0, reached + 0, branches + 0, taken + 0
    for (i = 1; i <= n_places; i++)
        print place_of(places[i])
}
