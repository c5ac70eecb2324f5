# The machine that attacks are tried on, below a fresh directory. `CANARYQXZW` is what nobody may read.
umask 022
mkdir -p work home tmp other outside home/.ssh home/state
echo 'CANARYQXZW beside' > secret.txt
echo '{"key": "CANARYQXZW beside"}' > secret.json
echo 'CANARYQXZW other' > other/secret.txt
echo 'CANARYQXZW home' > home/secret.txt
echo 'CANARYQXZW ssh' > home/.ssh/id
echo kept > outside/kept
echo ': harmless' > home/.bashrc
: > outside/CANARYQXZW-name
: > CANARYQXZW-name
chmod 755 home/.ssh
: > home/state/config.toml
git init -q -b main --template= other
cd work
git init -q -b main --template= .
git config user.name Somebody
git config user.email somebody@example.com
mkdir -p .git/hooks .git/info sub d1 d2
printf 'hello one\nhello two\nthree\n' > a.txt
printf 'hello one\nother\n' > b.txt
printf 'b\na\nc\na\n' > list.txt
printf '{"name": "thing", "list": [1, 2, 3]}\n' > data.json
printf 'fn main() {\n    println!("hello");\n}\n' > sub/main.rs
printf 'inner text\n' > sub/c.txt
printf 'same\n' > d1/x
printf 'same\n' > d2/x
git add .
git commit -qm first
echo four >> a.txt
git commit -qam second
git tag v1
