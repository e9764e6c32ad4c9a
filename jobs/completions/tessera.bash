# Completion of tessera in bash: commands, options, their values, and datasets (A.h5:/<TAB>). The program says what may
# stand there (tessera --complete); where it says nothing bash completes names of files.
_tessera() {
    local line=${COMP_LINE:0:COMP_POINT} word words=() cut
    # Words as they were written: COMP_WORDS is cut at colons and equals signs.
    while IFS= read -r word; do words+=("$word"); done < <(
        xargs -n 1 printf '%s\n' <<<"${line% *}" 2>/dev/null
        printf '%s\n' "${line##* }"
    )
    word=${words[-1]//\\/}
    words[-1]=$word
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do COMPREPLY+=("$word"); done < <(
        command "${words[0]}" --complete "${words[@]}" 2>/dev/null </dev/null
    )
    [ ${#COMPREPLY[@]} -gt 0 ] || return 0
    # What bash replaces begins behind the last of these.
    word=${words[-1]}
    case $COMP_WORDBREAKS in *:*) cut=${word%"${word##*:}"} ;; esac
    if [ -z "$cut" ]; then case $COMP_WORDBREAKS in *=*) cut=${word%"${word##*=}"} ;; esac; fi
    for word in "${!COMPREPLY[@]}"; do
        printf -v "COMPREPLY[$word]" %q "${COMPREPLY[word]#"$cut"}"
    done
}
complete -o bashdefault -o default -F _tessera tessera
