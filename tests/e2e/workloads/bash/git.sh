#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A repository from its first commit to a merge, a clone and a bundle.
set -eu
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=Cay GIT_AUTHOR_EMAIL=c@y GIT_COMMITTER_NAME=Cay GIT_COMMITTER_EMAIL=c@y

git init -q -b main repo
cd repo
echo one >file
git add file
git commit -q -m first
git checkout -q -b side
echo two >other
git add other
git commit -q -m second
git checkout -q main
echo three >>file
git commit -q -a -m third
git merge -q --no-edit side
git log --oneline --graph --format='%h %s'
git diff --stat HEAD~1 | tail -n 1
git status --porcelain
git gc -q
git fsck --no-progress && echo "fsck ok"
git clone -q . ../clone
git -C ../clone rev-parse HEAD
git bundle create -q ../repo.bundle main
git bundle verify -q ../repo.bundle && echo "bundle ok"
git archive HEAD | tar -t
