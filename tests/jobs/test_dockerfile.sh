#!/usr/bin/env bash
# Runs the commands of jobs/packaging/Dockerfile in bare Debians that debootstrap makes, a chroot a stage, without
# Docker: a package is built and installed, and a product is made and checked. It takes ten minutes and more, root,
# and Debian's
# mirror: so it does only with TSR_DOCKERFILE=1. Usage: test_dockerfile.sh REPOSITORY
# The bare system is kept in TSR_DEBIAN (/var/tmp/tessera-debian). The repository's HEAD is what COPY copies.
set -euo pipefail
root=$(realpath "$1")
keep=${TSR_DEBIAN:-/var/tmp/tessera-debian}
skip() { echo "skipped: $*"; exit 77; }
[ -n "${TSR_DOCKERFILE:-}" ] || skip "the Dockerfile is tried with TSR_DOCKERFILE=1"
[ "$(id -u)" = 0 ] || skip "a chroot needs root"
command -v debootstrap >/dev/null || skip "no debootstrap"
mkdir -p "$keep"
work=$(mktemp -d "$keep/run.XXXX")
leave() { # nothing is removed while something is mounted below it
    local folder
    for folder in "$work"/*/{dev,proc,sys}; do umount -R -l "$folder" 2>/dev/null || true; done
    if grep -q " $work/" /proc/mounts; then echo "still mounted below $work, left there" >&2; else
        rm -rf --one-file-system "$work"; fi
}
trap leave EXIT
if [ ! -e "$keep/base.done" ]; then
    mirror=$(grep -hsE '^(URIs:|deb )' /etc/apt/sources.list /etc/apt/sources.list.d/* |
        grep -oE 'https?://[^ ]+' | head -1)
    rm -rf --one-file-system "$keep/base"
    debootstrap --variant=minbase --include=ca-certificates bookworm "$keep/base" "$mirror" >"$keep/debootstrap.log" ||
        { tail "$keep/debootstrap.log"; exit 1; }
    touch "$keep/base.done"
fi

# stage NAME: a bare system, with this machine's way to the mirror
stage() {
    local to=$work/$1 folder
    cp -a "$keep/base/." "$work/$1/"
    rm -f "$to/etc/apt/sources.list"
    for folder in etc/apt/sources.list.d etc/apt/apt.conf.d etc/apt/keyrings usr/share/keyrings \
        usr/local/share/ca-certificates; do
        [ ! -d "/$folder" ] || { mkdir -p "$to/$folder" && cp -r "/$folder/." "$to/$folder/"; }
    done
    [ -s /etc/apt/sources.list ] && cp /etc/apt/sources.list "$to/etc/apt/"
    rm -f "$to/etc/apt/apt.conf.d/docker-clean"
    cp /etc/resolv.conf /etc/hosts "$to/etc/"
    within "$to" update-ca-certificates >/dev/null 2>&1
    for folder in proc sys dev; do
        mount --rbind "/$folder" "$to/$folder"
        mount --make-rslave "$to/$folder"
    done
}
within() {
    local to=$1
    shift
    env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$to" "$@"
}

count=0 now='' name=''
declare -A places
while IFS= read -r line; do
    set -f
    read -r -a words <<<"$line"
    set +f
    case ${words[0]} in
        FROM)
            [ "${words[1]}" = debian:12 ] || { echo "no bare system of '${words[1]}'"; exit 1; }
            name=${words[3]:-$((count++))}
            now=$work/$name
            places[$name]=$now
            mkdir "$now"
            stage "$name" ;;
        COPY)
            case ${words[1]} in
                --from=*) mkdir -p "$(dirname "$now${words[3]}")"
                    cp -a "${places[${words[1]#--from=}]}${words[2]}" "$now${words[3]}" ;;
                .) git clone -q "$root" "$now${words[2]}" ;;
                *) echo "COPY of what? $line"; exit 1 ;;
            esac ;;
        RUN)
            echo "in $name: ${line#RUN }"
            log=$keep/$name.log
            begin=$SECONDS
            within "$now" sh -c "${line#RUN }" >"$log" 2>&1 ||
                { tail -n 30 "$log"; echo "failed: all of it in $log"; exit 1; }
            echo "  $((SECONDS - begin)) s" ;;
        ENTRYPOINT)
            program=$(grep -oE '"[^"]+"' <<<"$line" | tr -d '"')
            within "$now" $program --version ;;
        *) echo "unknown: $line"; exit 1 ;;
    esac
done < <(sed -e '/^ *#/d' -e '/^$/d' "$root/jobs/packaging/Dockerfile" | sed -e ':a' -e '/\\$/{N;s/ *\\\n */ /;ba}')
echo "the container as it is in the end: $(within "$now" sh -c 'dpkg -s tessera | grep -E "^(Version|Depends)"')"
