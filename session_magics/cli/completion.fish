# fish: session-magics completion fish > ~/.config/fish/completions/session-magics.fish
function __session_magics_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete $words[2..] 2>/dev/null)
    switch "$found[1]"
        case :files
            __fish_complete_path (commandline -ct)
        case :commands
            __fish_complete_command
        case :directories
            __fish_complete_directories (commandline -ct)
        case '*'
            string join \n -- $found
    end
end
complete -c session-magics -f -a '(__session_magics_complete)'
