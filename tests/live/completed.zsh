# What zsh makes of command lines: zsh -f completed.zsh FUNCTIONS LINE... prints "LINE -> COMPLETED" each, of a zsh of its own
# at a terminal of its own that has the folder FUNCTIONS in its fpath, as if TAB had been typed behind the line.
zmodload zsh/zpty
folder=$1
shift
zpty z zsh -f -i
zpty -w z "PS1='' PS2=''; fpath=('$folder' \$fpath); autoload -Uz compinit; compinit -u -D; unsetopt beep listbeep; \
show() { print -r -- \"<<\$BUFFER>>\"; BUFFER=''; zle -R }; zle -N show; bindkey '^X' show; print rea''dy"
zpty -r z line '*ready*'
for typed; do
    zpty -n -w z "$typed"$'\t\x18'
    zpty -r z line '*<<*>>*'
    print -r -- "$typed -> ${${${line##*<<}%%>>*}% }"
done
zpty -d z
