target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@load_trans_bf16_kernel0.S = internal addrspace(3) global [768 x i16] undef, align 16

define ptx_kernel void @load_trans_bf16_kernel0(ptr addrspace(1) noalias readonly align 2 nonnull dereferenceable(512) %A, ptr addrspace(1) noalias writeonly align 16 nonnull dereferenceable(512) %D) #0 {
entry:
  %t.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 32}
  %t = zext i32 %t.id to i64
  %.1 = mul i64 %t, 24
  %.2 = mul i64 %t, 8
  br label %for.3.entry
for.3.entry:
  br label %for.3.head
for.3.head:
  %k = phi i64 [ 0, %for.3.entry ], [ %k.next, %for.3.latch ]
  %k.more = icmp slt i64 %k, 8
  br i1 %k.more, label %for.3.body, label %for.3.end
for.3.body:
  %.4 = add i64 %.2, %k
  %.5.at = getelementptr i16, ptr addrspace(1) %A, i64 %.4
  %.5 = load i16, ptr addrspace(1) %.5.at, align 2
  %.6 = add i64 %.1, %k
  %.7.at = getelementptr i16, ptr addrspace(3) @load_trans_bf16_kernel0.S, i64 %.6
  store i16 %.5, ptr addrspace(3) %.7.at, align 2
  br label %for.3.latch
for.3.latch:
  %k.next = add i64 %k, 1
  br label %for.3.head
for.3.end:
  %.8 = getelementptr i16, ptr addrspace(3) @load_trans_bf16_kernel0.S, i64 %.1
  %.9.all = call { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(ptr addrspace(3) %.8)
  %.9.r0 = extractvalue { i32, i32, i32, i32 } %.9.all, 0
  %.9.b0 = bitcast i32 %.9.r0 to i32
  %.9.v0 = insertelement <4 x i32> poison, i32 %.9.b0, i64 0
  %.9.r1 = extractvalue { i32, i32, i32, i32 } %.9.all, 1
  %.9.b1 = bitcast i32 %.9.r1 to i32
  %.9.v1 = insertelement <4 x i32> %.9.v0, i32 %.9.b1, i64 1
  %.9.r2 = extractvalue { i32, i32, i32, i32 } %.9.all, 2
  %.9.b2 = bitcast i32 %.9.r2 to i32
  %.9.v2 = insertelement <4 x i32> %.9.v1, i32 %.9.b2, i64 2
  %.9.r3 = extractvalue { i32, i32, i32, i32 } %.9.all, 3
  %.9.b3 = bitcast i32 %.9.r3 to i32
  %.9.v3 = insertelement <4 x i32> %.9.v2, i32 %.9.b3, i64 3
  %.9 = bitcast <4 x i32> %.9.v3 to <8 x i16>
  %.10.at = getelementptr i16, ptr addrspace(1) %D, i64 %.2
  store <8 x i16> %.9, ptr addrspace(1) %.10.at, align 16
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(ptr addrspace(3))

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @load_trans_bf16_kernel0, !"maxntidx", i32 32, !"maxntidy", i32 1, !"maxntidz", i32 1}
