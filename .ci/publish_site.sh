#!/usr/bin/env bash
# Puts a built site beside those of other versions, on the branch gh-pages: publish_site.sh FOLDER BRANCH_OR_TAG
# The branch `main` is `dev/`, a tag `v0.7.0` is `0.7.0/` and from then on `stable/`. versions.html lists what there is.
set -euo pipefail
site=$(cd "$1" && pwd)
case "$2" in
  v[0-9]*) version=${2#v}; stable=yes ;;
  main) version=dev; stable= ;;
  *) echo "publish_site.sh: neither main nor a tag of a version: $2" >&2; exit 2 ;;
esac
place=$(mktemp -d)
trap 'git worktree remove --force "$place" 2> /dev/null || rm -rf "$place"' EXIT
if git fetch --quiet --depth 1 origin gh-pages 2> /dev/null; then
  git worktree add --quiet --force -B gh-pages "$place" FETCH_HEAD
else
  git worktree add --quiet --force --detach "$place"
  git -C "$place" checkout --quiet --orphan gh-pages
  git -C "$place" rm -rfq --ignore-unmatch .
fi
for name in "$version" ${stable:+stable}; do
  rm -rf "${place:?}/$name"
  cp -r "$site" "$place/$name"
done
cd "$place"
touch .nojekyll
first=dev
[ -d stable ] && first=stable
echo "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0; url=$first/\"><title>cavity</title><a href=\"$first/\">cavity</a>" > index.html
{
  echo '<!doctype html><html lang=en><meta charset=utf-8><title>Versions of cavity</title><h1>Versions</h1><ul>'
  for folder in $(printf '%s\n' */ | sort -Vr); do echo "<li><a href=\"$folder\">${folder%/}</a>"; done
  echo '</ul></html>'
} > versions.html
git add --all
git -c user.name=docs -c user.email=docs@localhost commit --quiet -m "The site of $version" || { echo "nothing new"; exit 0; }
git push --quiet origin gh-pages
