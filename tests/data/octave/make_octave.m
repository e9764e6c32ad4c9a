% Makes variables.h5, as Octave writes its variables: octave-cli make_octave.m (Octave 7.3). Used by cli_info.
A = reshape(1:12, 3, 4) / 4;
S = single(A);
I = int8([1 2; 3 4]);
B = true(2, 3);
V = [1 2 3];
X = 3;
T = reshape(1:24, 2, 3, 4);
E = zeros(0, 3);
P = sparse(A);
C = {A};
D.x = A;
R = 1:5;
W = "text";
Z = A + 1i * A;
save("-hdf5", "variables.h5", "A", "S", "I", "B", "V", "X", "T", "E", "P", "C", "D", "R", "W", "Z");
