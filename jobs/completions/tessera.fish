# Completion of tessera in fish: commands, options, their values, and datasets (A.h5:/<TAB>). The program says what may
# stand there (tessera --complete); where it says nothing fish completes names of files.
function __tessera_find
    set -l words (commandline -opc) (commandline -ct)
    set -g __tessera_found (command $words[1] --complete $words 2>/dev/null </dev/null)
    test (count $__tessera_found) -gt 0
end
complete -c tessera -n __tessera_find -f -a '$__tessera_found'
