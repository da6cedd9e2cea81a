#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Coreutils and their friends, archives, pipes, jobs and traps.
set -eu -o pipefail

mkdir -p tree/deep
for i in $(seq 1 50); do
	printf '%d,%s\n' "$i" "$((i * i))" >"tree/deep/$i.csv"
done
echo "find $(find tree -name '*.csv' -type f | wc -l)"
echo "xargs $(find tree -name '*.csv' -print0 | sort -z | xargs -0 -n 10 -P 4 cat | wc -l)"
echo "awk $(cat tree/deep/*.csv | awk -F, '{ sum += $2 } END { print sum }')"
echo "sed $(sed -n 's/^7,\(.*\)$/[\1]/p' tree/deep/7.csv)"
echo "sort $(cat tree/deep/*.csv | sort -t, -k2,2nr | head -n 1)"
echo "grep $(grep -rlE '^(1|2)[0-9],' tree | wc -l)"

tar -czf tree.tar.gz tree
mkdir copy
tar -xzf tree.tar.gz -C copy
diff -r tree copy/tree && echo "tar same"
gzip -k -9 tree/deep/1.csv
echo "gzip $(zcat tree/deep/1.csv.gz)"
cp -a tree other
ln -s other/deep link
rm -r other/deep/*.csv
echo "left $(ls link | tr '\n' ' ')"
cp --reflink=auto --sparse=always tree.tar.gz again.tar.gz
cmp tree.tar.gz again.tar.gz && echo "cp same"
head -c 1M /dev/zero | sha256sum | cut -c1-16
dd if=/dev/zero of=block bs=4k count=16 status=none
echo "stat $(stat -c %s block) $(du --apparent-size -k block | cut -f1)k"

trap 'echo "trap"' USR1
kill -USR1 $$
sleep 60 &
kill $!
wait $! || echo "job ended with $?"
read -r line < <(echo "from a process")
echo "$line"
cat <<<"here: ${line^^}"
mkfifo pipe
(echo "through a fifo" >pipe) &
cat pipe
wait
echo "arithmetic $((2 ** 40)) $(printf '%.3f' "$(echo 'scale=4; 22/7' | awk -F= '{ print 22/7 }')")"
declare -A map=([sand]=1 [sea]=2)
echo "map ${#map[@]} ${map[sea]}"
